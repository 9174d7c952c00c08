import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

/// The audit log.
struct ActivityPage {
    let context: Context

    init(_ context: Context) { self.context = context }

    private static let most = 100

    func reply() async throws(AdministrationError) -> ConsoleReply {
        // A developer sees what concerns one of their containers.
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
        let older: HTML = entries.count > Self.most
            ? "<a class=\"button quiet\" href=\"\(context.address("activity", query: kept + [("before", shown.last.map { String($0.id) })]))\">Older entries</a>"
            : .none
        return Layout.page(
            context, .activity, title: "Activity",
            """
            \(HTML.when(context.administration.isOperator, filter(isWhole, account)))
            \(shown.isEmpty ? "<div class=\"card empty\">The audit log has nothing of that.</div>" : Self.table(shown, names))
            <div class="actions">\(older)<span class="quiet-text">Times in UTC. Entries stay for 180 days.</span></div>
            """)
    }

    private func filter(_ isWhole: Bool, _ account: String?) -> HTML {
        """
        <form class="card" method="get" action="\(Address(["activity"]))">
        <input type="hidden" name="c" value="\(context.container ?? "")"><input type="hidden" name="e" value="\(context.environment.rawValue)">
        <div class="row"><div class="field"><label for="account">Account <span class="hint">its address</span></label>
        <input id="account" name="account" autocomplete="off" value="\(account ?? "")"></div>
        <div class="field"><label class="choice"><input type="checkbox" name="all" value="1"\(HTML.when(isWhole, " checked"))>The whole cloud</label></div>
        <div class="field"><button>Show</button></div></div>
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
                    Layout.time(entry.at), HTML(event.action.rawValue), HTML(name(event.actor)), HTML(name(event.account)),
                    HTML(event.address), HTML(event.container), "\(event.subject)\(change)", HTML(event.outcome),
                ])
            })
    }
}
