import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The page of a database's zones and their shares.
struct ZonesPage {
    let context: Context
    private let console: Console

    init(_ context: Context, _ console: Console) { (self.context, self.console) = (context, console) }

    func reply() async throws -> ConsoleReply {
        let place = try PlaceFields(context)
        if context.request.isPost { return try await revoke(place) }
        let form: HTML = """
            <form class="card" method="get" action="\(Address(["zones"]))">
            <input type="hidden" name="c" value="\(place.place.container)"><input type="hidden" name="e" value="\(context.environment.rawValue)">
            <div class="row">
            <div class="field"><label for="db">Database</label><select id="db" name="db">
            \(DatabaseScope.allCases.html { Layout.option($0.name, $0.name.capitalized, isChosen: $0 == place.place.scope) })</select></div>
            <div class="field"><label for="account">Account <span class="hint">private and shared</span></label>
            <input id="account" name="account" autocomplete="off" value="\(place.place.account)"></div>
            <div class="field"><button>Show zones</button></div></div>
            </form>
            """
        guard place.place.scope == .public || !place.place.account.isEmpty else {
            return page(form + Layout.notice(.info, "Name the account whose \(place.place.scope.name) database it is."))
        }
        do throws(AdministrationError) {
            let zones = try await context.administration.zones(in: place.place)
            let isOne = context.value("shares") != nil
            let done: HTML = context.value("done") == nil ? .none : Layout.notice(.good, "The link is revoked.")
            let shares: HTML = isOne && place.place.scope != .public ? try await self.shares(place) : .none
            let report: HTML = isOne ? try await self.report(place) : .none
            let owners = try await UserNames(zones.map(\.zone.ownerName), context)
            return page(done + form + table(zones, owners, place) + shares + report)
        } catch {
            guard [.notFound, .forbidden, .invalid].contains(error.code) else { throw error }
            return page(
                form + Layout.notice(.error, Layout.sentence(error.publicMessage)), status: error.code == .forbidden ? 403 : 404)
        }
    }

    private func page(_ content: HTML, status: Int = 200) -> ConsoleReply {
        Layout.page(context, .zones, title: "Zones and shares", status: status, content)
    }

    private func table(_ zones: [Administration.ZoneSummary], _ owners: UserNames, _ place: PlaceFields) -> HTML {
        let rows = zones.map { summary -> HTML in
            let name = summary.zone.ownerName
            let owner: HTML = name == CloudZoneID.defaultOwner ? .none : owners.link(name)
            let query: [(name: String, value: String?)] = [
                ("db", place.place.scope.name), ("account", place.place.account.isEmpty ? nil : place.place.account),
                ("zone", summary.zone.zoneName), ("owner", place.place.scope == .shared ? summary.zone.ownerName : nil),
            ]
            let types = summary.records.sorted { $0.key < $1.key }.html { type, count in
                "<a href=\"\(context.address("records", query: query + [("type", type)]))\">\(type)</a> \(Layout.count(count))<br>"
            }
            let address = context.address("zones", query: query + [("shares", "1")])
            let shares: HTML =
                "<a href=\"\(address)\">\(summary.shares)<span class=\"hidden\"> shares, and who may do what</span></a>"
            return """
                <tr><td>\(summary.zone.zoneName)</td><td class="number">\(Layout.count(summary.total))</td><td>\(types)</td>\
                <td class="number">\(shares)</td><td>\(owner)</td></tr>
                """
        }
        return Layout.table("Zones", ["Zone", "Records", "Types", "Shares", "Owner"], rows)
    }

    /// The permissions of a participant, with reasons.
    private func permissions(_ person: ShareParticipant, _ share: CloudShare) -> HTML {
        let decisions = Administration.permissions(of: person, in: share)
        let count = decisions.count(where: \.isAllowed)
        return "<details><summary>\(count) of \(decisions.count)</summary>\(Self.list(decisions))</details>"
    }

    /// - Parameter isBarred: Whether the account may do nothing at all.
    private static func list(_ decisions: [ShareDecision], isBarred: Bool = false) -> HTML {
        let rows = decisions.html { decision in
            let isAllowed = decision.isAllowed && !isBarred
            return """
                <dt>\(isAllowed ? "✓" : "✗") \(decision.operation.rawValue)<span class="hidden">: \(isAllowed ? "allowed" : "not allowed")</span></dt>
                <dd>\(Layout.sentence(decision.reason))\(decision.remedy.map { " \($0.sentence)" } ?? "")</dd>
                """
        }
        return "<dl class=\"facts\">\(rows)</dl>"
    }

    // Permissions

    /// The permissions in the zone of the person whom the request names. Only operators may name a person by the address.
    private func report(_ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let person = (context.value("person") ?? "").trimmingCharacters(in: .whitespaces)
        let isOperator = context.administration.isOperator
        let hint = isOperator ? "an address, or a user record name" : "a user record name"
        let form: HTML = """
            <h2>Who may do what in \(place.place.zone)</h2>
            <form class="card" method="get" action="\(Address(["zones"]))">
            <input type="hidden" name="c" value="\(place.place.container)"><input type="hidden" name="e" value="\(context.environment.rawValue)">
            \(place.hiddenFields)<input type="hidden" name="shares" value="1">
            <div class="row"><div class="field"><label for="person">Person <span class="hint">\(hint)</span></label>
            <input id="person" name="person" autocomplete="off" required maxlength="255" value="\(person)"></div>
            <div class="field"><button>Show the permissions</button></div></div></form>
            """
        guard !person.isEmpty else { return form }
        let report = try await context.administration.permissions(of: person, in: place.place)
        let parts = report.parts.html { part in
            let title =
                part.share.map { "\($0.title ?? "A share without a title"): \(part.covers)" } ?? "In no share: \(part.covers)"
            let asWhat =
                part.participant.map { "\($0.role.title), \($0.permission.title), \($0.acceptanceStatus.title)" }
                ?? (part.share == nil ? nil : "Takes no part.")
            return """
                <section class="card" aria-label="\(title)"><h2>\(title)</h2>
                \(asWhat.map { "<p>\($0)</p>" } ?? .none)
                \(Self.list(part.decisions, isBarred: report.obstacle != nil))</section>
                """
        }
        let users = try await UserNames([report.userRecordName].compactMap(\.self), context)
        // A developer must not learn which addresses have accounts.
        let unknown: HTML = HTML.when(isOperator, " has no account.")
        let known: HTML = report.userRecordName.map { " is known here as \(users.link($0))." } ?? unknown
        return """
            \(form)
            \(report.obstacle.map { Layout.notice(.warning, $0) } ?? .none)
            <p>\(report.person)\(known)</p>
            \(parts)
            """
    }

    // Links

    private func revoke(_ place: PlaceFields) async throws -> ConsoleReply {
        guard context.value("action") == "revoke-link", let share = context.value("share"), let link = context.value("link")
        else {
            throw AdministrationError(.invalid, "say which link of which share")
        }
        let question = "The link \(link) is revoked: it leads nowhere at once. Those who have accepted it stay."
        if let page = try await console.confirmation(context, question, "Revoke the link") { return page }
        try await context.administration.revokeLink(link, to: share, in: place.place)
        return .redirect(to: context.address("zones", query: place.query + [("shares", "1"), ("done", "1")]))
    }

    private func links(_ share: CloudShare, _ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let links: [StoredLink]
        do throws(AdministrationError) {
            links = try await context.administration.links(to: share.id.recordName, in: place.place)
        } catch {
            guard error.code == .forbidden else { throw error }
            return "<p class=\"hint\">Its links are shown in the owner's database.</p>"
        }
        guard !links.isEmpty else { return "<p class=\"quiet-text\">There is no link to it.</p>" }
        let rows = links.map { link in
            let person = share.participants.first { $0.id == link.participant }
            return Layout.row([
                "<code>\(link.id)</code>",
                HTML(link.participant == nil ? "everybody" : person?.identity.title ?? "somebody removed"),
                """
                <form method="post" action="\(Address(["zones"]))">\(context.hiddenFields)\(place.hiddenFields)\
                <input type="hidden" name="action" value="revoke-link"><input type="hidden" name="share" value="\(share.id.recordName)">\
                <input type="hidden" name="link" value="\(link.id)"><button class="danger">Revoke<span class="hidden"> the link \(link.id)</span>…</button></form>
                """,
            ])
        }
        return Layout.table("Links to \(share.title ?? share.id.recordName)", ["Link", "For", ""], rows)
    }

    // Shares

    private func shares(_ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let shares = try await context.administration.shares(in: place.place)
        var sections: HTML = .none
        for share in shares { sections += try await section(share, place) }
        return "<h2>Shares of \(place.place.zone)</h2>"
            + (shares.isEmpty ? "<div class=\"card empty\">Nothing of the zone is shared.</div>" : sections)
    }

    private func section(_ share: CloudShare, _ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let covers: HTML =
            if case .hierarchy(let root) = share.coverage {
                "\(FieldView.link(to: root, context, place)) and the records below it"
            } else { "All records of the zone" }
        let users = try await UserNames(share.participants.compactMap(\.identity.userRecordName), context)
        let rows = share.participants.map { person in
            Layout.row([
                HTML(person.identity.title), HTML(person.role.title), HTML(person.permission.title),
                HTML(person.acceptanceStatus.title),
                person.identity.userRecordName.map(users.link)
                    ?? "<span class=\"quiet-text\">none yet</span>",
                permissions(person, share),
            ])
        }
        return """
            <section class="card" aria-label="\(share.title ?? share.id.recordName)">
            <h2>\(share.title ?? "Without a title")</h2>
            <p>\(covers). Everybody with the link: \(share.publicPermission.title).</p>
            \(Layout.table("Participants", ["Person", "Role", "Permission", "Status", "User record name", "May"], rows))
            <h2>Links</h2>
            \(try await links(share, place))
            </section>
            """
    }
}
