import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// The page of the last requests and the audit log. Its other parts are in extensions.
struct ActivityPage {
    let context: Context
    let figures: (any ServerFigures)?

    init(_ context: Context, _ figures: (any ServerFigures)?) { (self.context, self.figures) = (context, figures) }

    static let most = 100
    /// The number of requests on a page. On a small screen each request is a card.
    private static let requestsOfPage = 25

    func reply() async throws -> ConsoleReply {
        switch context.value("show") {
        case "requests": return try await requests()
        case "failures": return try await failures()
        case "notifications": return try await notifications()
        default: break
        }
        // A developer sees the activity in one of their containers only.
        let isWhole = context.administration.isOperator && context.value("all") != nil
        let container = isWhole ? nil : try context.demandContainer()
        let account = context.administration.isOperator ? context.value("account") : nil
        let entries = try await context.administration.auditLog(
            container: container, account: account, before: context.value("before").flatMap { Int64($0) }, limit: Self.most + 1)
        let shown = Array(entries.prefix(Self.most))
        var names: [String: String] = [:]
        if context.administration.isOperator {
            for id in Set(shown.flatMap { [$0.event.actor, $0.event.account] }) {
                if let name = try await context.administration.email(of: id) { names[id] = name }
            }
        }
        names[context.account.id] = context.account.email
        let kept: [(name: String, value: String?)] = [("all", isWhole ? "1" : nil), ("account", account)]
        let older: HTML =
            entries.count > Self.most
            ? "<a class=\"button quiet\" href=\"\(context.address("activity", query: kept + [("before", shown.last.map { String($0.id) })]))\">Older entries</a>"
            : .none
        return Layout.page(
            context, .activity, title: "Activity", isLive: context.value("before") == nil, kept: kept,
            """
            \(tabs(nil))
            \(HTML.when(context.administration.isOperator, filter(isWhole, account)))
            \(live(shown.isEmpty ? "<div class=\"card empty\">The audit log has nothing of that.</div>" : Self.table(shown, names)))
            <div class="actions">\(older)<span class="quiet-text">Times in UTC. Entries stay for 180 days.</span></div>
            """)
    }

    /// Links to the parts of the page.
    ///
    /// - Parameter shown: The part that is shown; `nil` for the audit log.
    func tabs(_ shown: String?) -> HTML {
        guard figures != nil else { return .none }
        let parts: [(String?, String)] = [
            (nil, "Audit log"), ("requests", "Requests"), ("failures", "Sync errors"), ("notifications", "Notifications"),
        ]
        return """
            <p class="spans">\(parts.html { part, title in
                "<a href=\"\(context.address("activity", query: [("show", part)]))\"\(HTML.when(part == shown, " aria-current=\"true\""))>\(title)</a>\n"
            })</p>
            """
    }

    /// A part of a page that refreshes by itself, if the browser runs scripts.
    func live(_ content: HTML) -> HTML { "<p data-live-choice></p><div data-live>\(content)</div>" }

    /// The filters of requests, with their names.
    private static let results = [
        ("well", "well"), ("failed", "failed"), ("refused", "failed: refused (4xx)"), ("broken", "failed: in the server (5xx)"),
    ]

    /// Whether a status fits one of ``results``.
    private static func has(_ status: Int, _ result: String) -> Bool {
        switch result {
        case "well": status < 400
        case "refused": (400..<500).contains(status)
        case "broken": status >= 500
        default: status >= 400
        }
    }

    /// The last requests: of one container or, for operators, of the whole server.
    private func requests() async throws(AdministrationError) -> ConsoleReply {
        let isWhole = context.administration.isOperator && context.value("all") != nil
        let container = isWhole ? nil : try context.demandContainer()
        let (operation, result, account) = (context.value("operation"), context.value("result"), context.value("account"))
        var wanted: String?
        if let account, context.administration.isOperator { wanted = try await context.administration.account(account).id }
        let before = context.value("before").flatMap { Int64($0) }
        func isWanted(_ request: ServedRequest) -> Bool {
            if let operation, request.operation != operation { return false }
            if let wanted, request.account != wanted { return false }
            if let result, !Self.has(request.status, result) { return false }
            if let before, request.at >= before { return false }
            return true
        }
        let all = figures?.requests(of: container) ?? []
        let found = all.filter(isWanted)
        let shown = found.prefix(Self.requestsOfPage)
        var rows: [HTML] = []
        for request in shown {
            rows.append(
                Layout.row([
                    Layout.time(request.at), HTML(request.operation), HTML(String(request.status)),
                    HTML("\(Int(request.milliseconds.rounded())) ms"),
                    HTML(try await name(of: request.account, in: request.container)), HTML(request.address),
                    HTML(request.container.isEmpty ? "" : "\(request.container) (\(request.environment))"),
                ]))
        }
        let operations = Set(all.map(\.operation)).sorted()
        let kept: [(name: String, value: String?)] = [
            ("show", "requests"), ("operation", operation), ("result", result), ("account", account),
            ("all", isWhole ? "1" : nil),
        ]
        let table: HTML =
            rows.isEmpty
            ? "<div class=\"card empty\">No such request since the server has started.</div>"
            : Layout.table("Requests", ["When", "Operation", "Status", "Took", "Account", "From", "Where"], rows)
        let last = found.count > shown.count ? shown.last?.at : nil
        var older = HTML.none
        if let last {
            let address = context.address("activity", query: kept + [("before", String(last))])
            older = "<div class=\"actions\"><a class=\"button quiet\" href=\"\(address)\">Older requests</a></div>"
        }
        return Layout.page(
            context, .activity, title: "Requests", isLive: before == nil, kept: kept,
            """
            \(tabs("requests"))
            <form class="card" method="get" action="\(Address(["activity"]))"><input type="hidden" name="show" value="requests">
            <input type="hidden" name="c" value="\(context.container ?? "")"><input type="hidden" name="e" value="\(context.environment.rawValue)">
            <div class="row">
            <div class="field"><label for="operation">Operation</label><select id="operation" name="operation"><option value="">All</option>
            \(operations.html { Layout.option($0, isChosen: $0 == operation) })</select></div>
            <div class="field"><label for="result">Result</label><select id="result" name="result"><option value="">All</option>
            \(Self.results.html { value, title in Layout.option(value, title, isChosen: value == result) })</select></div>
            \(HTML.when(context.administration.isOperator, ofAccount(account, isWhole)))
            <div class="field"><button>Filter</button></div></div></form>
            \(before == nil ? live(table + older) : table + older)
            <p class="quiet-text">The last 1,000 requests of this server, without their contents. Times in UTC.</p>
            """)
    }

    /// The name of an account: its address for operators, and its user record name in the container for developers.
    func name(of account: String, in container: String) async throws(AdministrationError) -> String {
        guard !account.isEmpty else { return "" }
        guard context.administration.isOperator else {
            return context.administration.userRecordName(ofAccount: account, in: container)
        }
        return try await context.administration.email(of: account) ?? account
    }

    private func filter(_ isWhole: Bool, _ account: String?) -> HTML {
        """
        <form class="card" method="get" action="\(Address(["activity"]))">
        <input type="hidden" name="c" value="\(context.container ?? "")"><input type="hidden" name="e" value="\(context.environment.rawValue)">
        <div class="row"><div class="field"><label for="account">Account <span class="hint">its address</span></label>
        <input id="account" name="account" autocomplete="off" value="\(account ?? "")"></div>
        <div class="field"><label class="choice"><input type="checkbox" name="all" value="1"\(HTML.when(isWhole, " checked"))>The whole cloud</label></div>
        <div class="field"><button>Filter</button></div></div>
        </form>
        """
    }

    /// - Parameter names: The addresses of accounts, by their identifiers.
    static func table(_ entries: [AuditEntry], _ names: [String: String]) -> HTML {
        guard !entries.isEmpty else { return "<div class=\"card empty\">Nothing yet.</div>" }
        func name(_ id: String) -> String { names[id] ?? id }
        return Layout.table(
            "Entries", ["When", "What", "By", "Account", "From", "Where", "To what", "Result"],
            entries.map { entry in
                let event = entry.event
                let change: HTML =
                    event.before.isEmpty && event.after.isEmpty
                    ? .none
                    : """
                    <details><summary>Before and after</summary>
                    <p class="name">Before</p><pre tabindex="0">\(event.before.isEmpty ? "–" : event.before)</pre>
                    <p class="name">After</p><pre tabindex="0">\(event.after.isEmpty ? "–" : event.after)</pre></details>
                    """
                return Layout.row([
                    Layout.time(entry.at), Layout.parts(event.action.rawValue), Layout.parts(name(event.actor)),
                    Layout.parts(name(event.account)), Layout.parts(event.address), Layout.parts(event.container),
                    "\(Layout.parts(event.subject))\(change)", HTML(event.outcome),
                ])
            })
    }
}
