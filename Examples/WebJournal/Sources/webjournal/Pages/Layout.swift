import Foundation
import Tidemark

/// What all pages have around them.
struct Layout {
    /// Who is signed in; `nil` for nobody.
    let session: Session?
    let notice: Session.Notice?

    static let version = Secret.make()

    /// A whole document.
    ///
    /// - Parameter isLive: Whether parts of it follow the journal.
    func document(_ title: String, isLive: Bool = false, _ content: HTML) -> HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(title) – Travel journal</title>
        <link rel="stylesheet" href="/style.css?\(Self.version)">
        <link rel="icon" type="image/svg+xml" href="/icon.svg">
        \(HTML.when(session != nil, "<script type=\"module\" src=\"/live.js?\(Self.version)\"></script>"))
        </head>
        <body\(HTML.when(isLive, " data-follows=\"/changes\""))>
        <a class="skip" href="#content">Skip to the content</a>
        <header class="top"><div class="inner">
        <a class="brand" href="/"><img src="/icon.svg" alt="" width="28" height="28"><span>Travel journal</span></a>
        \(person)
        </div></header>
        <main id="content" tabindex="-1">
        \(notice.map { Self.notice($0) } ?? HTML.none)
        \(content)
        </main>
        <div id="live" class="live" role="status"></div>
        </body>
        </html>

        """
    }

    private var person: HTML {
        guard let session else { return .none }
        let person = session.journal.person
        return """
            <div class="person"><span class="avatar" aria-hidden="true">\(String(person.name.prefix(1)))</span>
            <span class="name">\(person.name)</span>
            <form method="post" action="/sign-out">\(Self.token(session))<button class="plain">Sign out</button></form></div>
            """
    }

    /// What forms prove with that they are from here.
    static func token(_ session: Session) -> HTML { "<input type=\"hidden\" name=\"token\" value=\"\(session.formToken)\">" }

    static func notice(_ notice: Session.Notice) -> HTML {
        """
        <div class="notice \(notice.tone.rawValue)" role="\(notice.tone == .error ? "alert" : "status")"><p>\(notice.text)</p>
        \(notice.link.map { link in
            """
            <label class="field"><span>The link, which is told once</span><input class="link" readonly value="\(link)"></label>
            """
        } ?? HTML.none)</div>
        """
    }

    static func notice(_ tone: Session.Notice.Tone, _ text: String) -> HTML { notice(Session.Notice(tone: tone, text: text)) }

    /// The page of an error.
    func failure(_ error: PageError) -> HTML {
        document(
            error.title,
            """
            <div class="narrow"><h1>\(error.title)</h1><p>\(error.message)</p><p><a class="button" href="/">To the journal</a></p></div>
            """)
    }

    static func day(_ date: Date) -> HTML {
        let day = date.formatted(
            Date.FormatStyle(locale: Locale(identifier: "en_GB"), timeZone: .gmt).day().month(.wide).year())
        return "<time datetime=\"\(date.formatted(.iso8601))\">\(day)</time>"
    }

    /// A text with its paragraphs and ends of lines.
    static func paragraphs(_ text: String) -> [HTML] {
        text.split(separator: "\n", omittingEmptySubsequences: true).map { "<p>\(String($0))</p>" }
    }
}

/// The addresses of the site's pages.
enum Path {
    static func destination(_ destination: Destination, _ part: String = "") -> String {
        "/destinations/\(destination.id.uuidString.lowercased())\(part.isEmpty ? "" : "/\(part)")"
    }

    /// The address of a picture names its content, so that browsers may keep it.
    static func picture(_ destination: Destination, isThumbnail: Bool) -> String {
        let asset = isThumbnail ? destination.imageThumbnail ?? destination.image : destination.image
        return Self.destination(destination, isThumbnail ? "thumbnail" : "picture") + "?\(asset.digest ?? "")"
    }
}
