import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// The zones of a database, and what of them is shared.
struct ZonesPage {
    let context: Context

    init(_ context: Context) { self.context = context }

    func reply() async throws(AdministrationError) -> ConsoleReply {
        let place = try PlaceFields(context)
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
            let shares: HTML = context.value("shares") == nil ? .none : try await self.shares(place)
            return page(form + table(zones, place) + shares)
        } catch {
            guard [.notFound, .forbidden, .invalid].contains(error.code) else { throw error }
            return page(
                form + Layout.notice(.error, Layout.sentence(error.publicMessage)), status: error.code == .forbidden ? 403 : 404)
        }
    }

    private func page(_ content: HTML, status: Int = 200) -> ConsoleReply {
        Layout.page(context, .zones, title: "Zones and shares", status: status, content)
    }

    private func table(_ zones: [Administration.ZoneSummary], _ place: PlaceFields) -> HTML {
        let rows = zones.map { summary -> HTML in
            let query: [(name: String, value: String?)] = [
                ("db", place.place.scope.name), ("account", place.place.account.isEmpty ? nil : place.place.account),
                ("zone", summary.zone.zoneName), ("owner", place.place.scope == .shared ? summary.zone.ownerName : nil),
            ]
            let types = summary.records.sorted { $0.key < $1.key }.html { type, count in
                "<a href=\"\(context.address("records", query: query + [("type", type)]))\">\(type)</a> \(Layout.count(count))<br>"
            }
            let shares: HTML =
                summary.shares == 0
                ? "0" : "<a href=\"\(context.address("zones", query: query + [("shares", "1")]))\">\(summary.shares)</a>"
            return """
                <tr><td>\(summary.zone.zoneName)</td><td class="number">\(Layout.count(summary.total))</td><td>\(types)</td>\
                <td class="number">\(shares)</td><td><code>\(summary.zone.ownerName == CloudZoneID.defaultOwner ? "" : summary.zone.ownerName)</code></td></tr>
                """
        }
        return Layout.table("Zones", ["Zone", "Records", "Types", "Shares", "Owner"], rows)
    }

    /// What a participant may do, and why.
    private func permissions(_ person: ShareParticipant, _ share: CloudShare) -> HTML {
        let decisions = Administration.permissions(of: person, in: share)
        let rows = decisions.html { decision in
            """
            <dt>\(decision.isAllowed ? "✓" : "✗") \(decision.operation.rawValue)<span class="hidden">: \(decision.isAllowed ? "allowed" : "not allowed")</span></dt>
            <dd>\(decision.reason)\(decision.remedy.map { ". \($0.text)" } ?? "")</dd>
            """
        }
        let count = decisions.count(where: \.isAllowed)
        return "<details><summary>\(count) of \(decisions.count)</summary><dl class=\"facts\">\(rows)</dl></details>"
    }

    private func shares(_ place: PlaceFields) async throws(AdministrationError) -> HTML {
        let shares = try await context.administration.shares(in: place.place)
        return "<h2>Shares of \(place.place.zone)</h2>"
            + shares.html { share in
                let covers: HTML =
                    if case .hierarchy(let root) = share.coverage {
                        "\(FieldView.link(to: root, context, place)) and the records below it"
                    } else { "All records of the zone" }
                let rows = share.participants.map { person in
                    Layout.row([
                        HTML(person.identity.title), HTML(person.role.title), HTML(person.permission.title),
                        HTML(person.acceptanceStatus.title),
                        person.identity.userRecordName.map { "<code>\($0)</code>" }
                            ?? "<span class=\"quiet-text\">no account yet</span>",
                        permissions(person, share),
                    ])
                }
                return """
                    <section class="card" aria-label="\(share.title ?? share.id.recordName)">
                    <h2>\(share.title ?? "Without a title")</h2>
                    <p>\(covers). Everybody with the link: \(share.publicPermission.title).</p>
                    \(Layout.table("Participants", ["Person", "Role", "Permission", "Status", "User record name", "May"], rows))
                    </section>
                    """
            }
    }
}
