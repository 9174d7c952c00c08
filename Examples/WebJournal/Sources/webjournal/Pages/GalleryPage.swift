import Foundation
import Tidemark

/// Destinations, newest first, page by page.
struct GalleryPage {
    let gallery: Gallery
    let layout: Layout

    var html: HTML {
        layout.document(
            "Places", isLive: true,
            """
            <div class="heading"><h1>Places</h1><a class="button" href="/destinations/new">Add a place</a></div>
            <div id="gallery" data-live>\(content)</div>
            <nav id="pages" class="pages" aria-label="Pages" data-live>\(links)</nav>
            """)
    }

    private var content: HTML {
        if !gallery.cards.isEmpty { return "<ul class=\"grid\">\(gallery.cards.map(Self.card))</ul>" }
        return gallery.isFirst ? Self.empty : "<p class=\"quiet-text\">There are no older places any more.</p>"
    }

    /// The cursor names a place in the list, so nothing is shown twice or left out when others add and delete meanwhile. It leads one way: back are the
    /// browser's own button, and the first page.
    private var links: HTML {
        let newest: HTML = "<a class=\"button quiet\" href=\"/\">Newest places</a>"
        let older = gallery.next.map { cursor -> HTML in
            "<a class=\"button quiet\" rel=\"next\" href=\"/?after=\(cursor)\">Older places</a>"
        }
        return "\(HTML.when(!gallery.isFirst, newest))\(older ?? HTML.none)"
    }

    private static let empty: HTML = """
        <div class="empty"><svg viewBox="0 0 120 80" aria-hidden="true"><path d="M8 70 42 22l18 26 12-16 40 38z"/><circle cx="86" cy="20" r="9"/></svg>
        <h2>Nothing here yet</h2>
        <p>Add a photo of a place that you have been to. It is on all of your devices, and with the people you share it with.</p>
        <p><a class="button" href="/destinations/new">Add the first place</a></p></div>
        """

    private static func card(_ card: Card) -> HTML {
        let it = card.destination
        return """
            <li id="\(it.recordName)"><a class="card" href="\(Path.destination(it))">
            <img src="\(Path.picture(it, isThumbnail: true))" alt="" width="480" height="320" loading="lazy">
            <span class="caption">\(it.caption)</span>
            <span class="facts">\(Layout.day(it.createdAt))\(badge(card))</span></a></li>
            """
    }

    private static func badge(_ card: Card) -> HTML {
        if let owner = card.owner { return " <span class=\"badge\">from \(owner)</span>" }
        return card.isShared ? " <span class=\"badge\">shared</span>" : .none
    }
}
