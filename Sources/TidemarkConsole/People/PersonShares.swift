import TidemarkAdministration
import TidemarkCloud
import TidemarkModel

/// The part of a person's page that lists shares, and lets the person leave shares of others.
struct PersonShares {
    private let person: Person

    init(_ person: Person) { self.person = person }

    private static let here = Address(under: Address.peopleRoot)

    /// - Parameter alert: The message on a refused form.
    func section(_ alert: HTML) async throws(AdministrationError) -> HTML {
        let found = try await person.own.shares()
        let unread: HTML = HTML.when(
            !found.unread.isEmpty,
            Layout.notice(.warning, "What is shared in \(found.unread.map(\.place).joined(separator: ", ")) can't be read now."))
        let rows = found.shares.map { shared in
            Layout.row([
                HTML(Self.title(shared)), HTML(Self.owner(shared)), HTML(Self.permission(shared)),
                HTML("\(shared.container) (\(shared.environment.rawValue))"), shared.isOwn ? .none : leave(shared),
            ])
        }
        guard !rows.isEmpty else {
            guard found.unread.isEmpty else { return "<h2>Shares</h2>\(alert)\(unread)" }
            return "<h2>Shares</h2>\(alert)<p class=\"quiet-text\">You share nothing, and nothing is shared with you.</p>"
        }
        return "<h2>Shares</h2>\(alert)\(unread)\(Layout.table("Shares", ["What", "By", "You may", "App", ""], rows))"
    }

    private func leave(_ shared: PersonalAccount.PersonalShare) -> HTML {
        person.form(
            Self.here, "leave",
            """
            <input type="hidden" name="share" value="\(shared.key)">
            <button class="danger" aria-label="Leave \(Self.title(shared))">Leave…</button>
            """)
    }

    /// Asks, and then leaves a share of another person.
    func leave() async throws -> ConsoleReply {
        let key = person.value("share")
        let found = try await person.own.shares()
        guard let shared = found.shares.first(where: { !$0.isOwn && $0.key == key }) else {
            guard found.unread.isEmpty else {
                throw AdministrationError(.busy, "not all shares can be read now; try again in a minute")
            }
            throw AdministrationError(.notFound, "there is no such share; you may have left it already")
        }
        guard person.value("confirmed") != nil else {
            return PeopleLayout.page(
                person, title: "Leave the share?",
                """
                <div class="card"><p>You take part in “\(Self.title(shared))” of \(Self.owner(shared)) no longer. Its records go from your devices when these
                synchronise; they stay with who shares them, who can invite you again.</p>
                \(person.form(
                    Self.here, "leave",
                    """
                    <input type="hidden" name="share" value="\(shared.key)"><input type="hidden" name="confirmed" value="1">
                    <div class="actions"><button class="danger">Leave the share</button>
                    <a class="button quiet" href="\(Self.here)">Cancel</a></div>
                    """))</div>
                """)
        }
        try await person.own.leave(shared)
        return .redirect(to: Self.here.with("done", "left"))
    }

    private static func title(_ shared: PersonalAccount.PersonalShare) -> String {
        let title = shared.share.title ?? ""
        return title.isEmpty ? "Without a title" : title
    }

    private static func owner(_ shared: PersonalAccount.PersonalShare) -> String {
        guard shared.isOwn else { return shared.share.owner?.identity.title ?? "unknown" }
        let others = shared.share.participants.count { $0.role != .owner && $0.acceptanceStatus == .accepted }
        return "you, with \(others) \(others == 1 ? "other" : "others")"
    }

    private static func permission(_ shared: PersonalAccount.PersonalShare) -> String {
        shared.isOwn ? "all" : SharePage.text(shared.share.currentUser?.permission)
    }
}
