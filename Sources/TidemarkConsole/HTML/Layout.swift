import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

/// The frame of the console's pages, and the parts that pages share.
enum Layout {
    /// A page for a signed-in user of the console: an operator or a developer.
    ///
    /// - Parameters:
    ///   - isLive: Whether the page has a part that refreshes by itself: an element with `data-live`, and one with
    ///     `data-live-choice`, where people can stop it.
    ///   - kept: The values of the query that stay when another container or environment is chosen.
    static func page(
        _ context: Context, _ section: Section?, title: String, status: Int = 200, isLive: Bool = false,
        kept: [(name: String, value: String?)] = [], _ content: HTML
    ) -> ConsoleReply {
        // A form on the page shows the refusal itself.
        let isSaid = content.text.contains(RefusedForm.mark)
        let refusal: HTML = isSaid ? .none : context.refusal?.alert ?? .none
        let body: HTML = """
            <header class="top">
            <a class="brand" href="\(Address())">Tidemark</a>
            \(chooser(context, section, kept))
            <div class="person"><a class="email" href="\(context.address("me"))">\(context.account.email)</a>
            <form method="post" action="\(Address(["sign-out"]))">\(context.hiddenFields)<button class="quiet">Sign out</button></form></div>
            </header>
            <div class="frame">
            <nav aria-label="Sections"><ul>
            \(Section.allCases.filter { !$0.needsOperator || context.administration.isOperator }.html { item in
                """
                <li><a href="\(context.address(item.rawValue))"\(HTML.when(item == section, " aria-current=\"page\""))>\(item.title)</a></li>
                """
            })
            </ul></nav>
            <main id="content" tabindex="-1">
            <h1>\(title)</h1>
            \(refusal)\(content)
            </main>
            </div>
            """
        return ConsoleReply(status, document(title, hasModule: isLive, body))
    }

    /// The choice of a container and an environment.
    private static func chooser(_ context: Context, _ section: Section?, _ kept: [(name: String, value: String?)]) -> HTML {
        guard let container = context.container else { return .none }
        return """
            <form class="chooser" method="get" action="\(Address(section.map { $0 == .overview ? [] : [$0.rawValue] } ?? []))">
            <label><span class="hidden">Container</span>
            <select name="c">\(context.containers.html { option($0, isChosen: $0 == container) })</select></label>
            <label><span class="hidden">Environment</span>
            <select name="e">\(StoreEnvironment.allCases.html { option($0.rawValue, isChosen: $0 == context.environment) })</select></label>
            \(kept.html { name, value in value.map { "<input type=\"hidden\" name=\"\(name)\" value=\"\($0)\">" } ?? .none })
            <button class="quiet">Show</button>
            </form>
            """
    }

    /// The set of pages to which a document belongs. Each set has its own address for the style sheet, because a proxy may let
    /// only some clients reach the console.
    enum Site {
        case console, people

        var title: String { self == .console ? "Tidemark console" : "Tidemark" }
        var root: String { self == .console ? Address.root : Address.peopleRoot }
    }

    /// A whole document.
    ///
    /// - Parameters:
    ///   - hasModule: Whether it loads ``LiveModule``.
    ///   - refresh: An address to which the browser goes by itself.
    static func document(
        _ title: String, of site: Site = .console, hasModule: Bool = false, refresh: String? = nil, _ body: HTML
    ) -> HTML {
        let going: HTML = refresh.map { "<meta http-equiv=\"refresh\" content=\"\("0; url=" + $0)\">" } ?? .none
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            \(going)
            <title>\(title) – \(site.title)</title>
            <link rel="stylesheet" href="\(Address(["style.css"], under: site.root))">
            <link rel="icon" type="image/svg+xml" href="\(Address(["icon.svg"], under: site.root))">
            \(HTML.when(hasModule, "<script type=\"module\" src=\"\(Address([LiveModule.name]))\"></script>"))
            </head>
            <body>
            <a class="skip" href="#content">Skip to the content</a>
            \(body)
            </body>
            </html>

            """
    }

    /// The page of an error.
    ///
    /// - Parameter context: `nil` if nobody is signed in.
    static func failure(_ error: AdministrationError, _ context: Context?) -> ConsoleReply {
        let (status, title) = status(of: error)
        let content = notice(.error, message(of: error))
        guard let context else {
            return ConsoleReply(
                status,
                document(
                    title,
                    """
                    <main id="content" class="narrow" tabindex="-1"><h1>\(title)</h1>\(content)
                    <p><a href="\(Address())">To the console</a></p></main>
                    """))
        }
        let (address, words) = back(context)
        return page(
            context, nil, title: title, status: status,
            content + "<p><a class=\"button quiet\" href=\"\(address)\">\(words)</a></p>")
    }

    /// The address and the text of the link on a page of an error: to a page that can be shown.
    private static func back(_ context: Context) -> (Address, String) {
        let (section, words): (Section?, String?) =
            switch context.request.page {
            case "account": (.accounts, "To the accounts")
            case "record", "asset": (.records, "To the records")
            case let page: (Section(rawValue: page), nil)
            }
        let isSeen = section.map { $0.needsOperator ? context.administration.isOperator : context.container != nil } ?? false
        guard let section, section != .overview, isSeen else { return (context.address(""), "To the overview") }
        return (context.address(section.rawValue), words ?? "To the page \(section.title)")
    }

    /// The status and the heading of an error.
    static func status(of error: AdministrationError) -> (Int, String) {
        switch error.code {
        case .notFound: (404, "Not found")
        case .forbidden: (403, "Not allowed")
        case .invalid, .missingIndex: (400, "That can't be")
        case .exists, .conflict: (409, "It was changed meanwhile")
        case .busy: (503, "Busy")
        case .damaged, .failed: (500, "It has failed")
        }
    }

    /// The message of an error for a page. An internal failure is for the log alone, because it may name things that the reader
    /// must not see.
    static func message(of error: AdministrationError) -> String {
        error.code == .failed ? "The server has failed; its log says why." : sentence(error.publicMessage)
    }

    /// A message as a sentence.
    static func sentence(_ message: String) -> String {
        let text = message.prefix(1).uppercased() + message.dropFirst()
        return text.hasSuffix(".") || text.hasSuffix("?") ? text : text + "."
    }

    // Pieces

    enum Tone: String { case info, good, warning, error }

    /// A message box.
    static func notice(_ tone: Tone, _ text: String, _ more: HTML = .none) -> HTML {
        """
        <div class="notice \(tone.rawValue)" role="\(tone == .error ? "alert" : "status")"><p>\(text)</p>\(more)</div>
        """
    }

    static func option(_ value: String, _ title: String? = nil, isChosen: Bool) -> HTML {
        """
        <option value="\(value)"\(HTML.when(isChosen, " selected"))>\(title ?? value)</option>
        """
    }

    /// A table. A table that is too wide scrolls by itself. On a small screen each row is a card, and each cell has the name of
    /// its column. A column without a name has a row's buttons.
    ///
    /// - Parameter rows: The rows, whose cells contain no tables.
    static func table(_ label: String, _ columns: [String], _ rows: [HTML]) -> HTML {
        let cells = rows.map { $0.text.split(separator: "<td", omittingEmptySubsequences: false) }
        let heads = columns.enumerated().html { number, column in
            let isNumber = cells.first.map { $0.count > number + 1 && $0[number + 1].hasPrefix(" class=\"number\"") } ?? false
            let title = column.isEmpty ? hiddenTitle : HTML(column)
            return "<th scope=\"col\"\(HTML.when(isNumber, " class=\"number\""))>\(title)</th>"
        }
        return """
            <div class="scroll" role="region" aria-label="\(label)" tabindex="0"><table>
            <thead><tr>\(heads)</tr></thead>
            <tbody>\(cells.map { named($0, columns) })</tbody>
            </table></div>
            """
    }

    private static let hiddenTitle: HTML = "<span class=\"hidden\">Actions</span>"

    /// Adds the names of the columns to a row's cells.
    ///
    /// - Parameter cells: The text of a row, cut where its cells begin.
    private static func named(_ cells: [Substring], _ columns: [String]) -> HTML {
        cells.enumerated().html { number, cell in
            let text = HTML(stringLiteral: String(cell))
            guard number > 0 else { return text }
            guard columns.indices.contains(number - 1), !columns[number - 1].isEmpty else { return "<td\(text)" }
            return "<td data-column=\"\(columns[number - 1])\"\(text)"
        }
    }

    static func row(_ cells: [HTML]) -> HTML { "<tr>\(cells.html { "<td>\($0)</td>" })</tr>" }

    /// The most bytes of a part of a word that stays whole in a cell.
    private static let wholePart = 20

    /// A word, such as an address or an action, that may break between its parts: after dots, slashes and at signs.
    static func parts(_ word: String) -> HTML {
        guard !word.isEmpty else { return .none }
        var (pieces, piece): ([HTML], String) = ([], "")
        var longest = 0
        func end() {
            guard !piece.isEmpty else { return }
            longest = max(longest, piece.utf8.count)
            pieces.append(HTML(piece))
            piece = ""
        }
        for character in word {
            piece.append(character)
            if ".@/".contains(character) { end() }
        }
        end()
        let text = pieces.enumerated().html { $0 == 0 ? $1 : "<wbr>\($1)" }
        return longest > wholePart ? text : "<span class=\"parts\">\(text)</span>"
    }

    /// A time to the second, in UTC. Its title is the time to the microsecond, so that times within a second can be told apart.
    static func time(_ microseconds: Int64) -> HTML {
        let text = Timestamp.text(microseconds: microseconds)
        return "<time datetime=\"\(text)\" title=\"\(text)\">\(moment(microseconds))</time>"
    }

    /// A time to the second as a text, in UTC.
    static func moment(_ microseconds: Int64) -> String {
        String(Timestamp.text(microseconds: microseconds).prefix(19)).replacing("T", with: " ")
    }

    static func count(_ number: Int) -> String {
        var (text, digits) = ("", Array(String(number)))
        while digits.count > 3 {
            text = "," + String(digits.suffix(3)) + text
            digits.removeLast(3)
        }
        return String(digits) + text
    }

    /// A number of bytes, for people.
    static func bytes(_ number: Int64) -> String {
        var (value, unit) = (Double(number), 0)
        let units = ["bytes", "kB", "MB", "GB", "TB", "PB"]
        while value >= 999.5, unit < units.count - 1 { (value, unit) = (value / 1000, unit + 1) }
        if unit == 0 { return "\(number) \(number == 1 ? "byte" : "bytes")" }
        let tenths = Int((value * 10).rounded())
        return value < 10 ? "\(tenths / 10).\(tenths % 10) \(units[unit])" : "\(Int(value.rounded())) \(units[unit])"
    }
}
