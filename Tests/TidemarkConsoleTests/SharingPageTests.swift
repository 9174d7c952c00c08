import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

@testable import TidemarkConsole

/// Goal: the pages say what any person may do in a zone and why, as the cloud decides it; a link is found and revoked without
/// showing its secret. Method: a shared zone, the report compared with what the cloud permits the person, and forms.
@Suite(.timeLimit(.minutes(30))) struct SharingPageTests {
    private static let zone = [
        "c": ConsoleFixture.journal, "db": "private", "account": "anna@example.org", "zone": PeopleFixture.zone.zoneName,
        "shares": "1",
    ]
    private static let place = RecordPlace(
        container: ConsoleFixture.journal, scope: .private, account: "anna@example.org", zone: PeopleFixture.zone.zoneName)

    private func administration(_ fixture: PeopleFixture) -> Administration {
        Administration(fixture.cloud, fixture.credentials, by: .system(name: "user:test"))
    }

    @Test func `the report of a person is what the cloud permits that person`() async throws {
        let fixture = try await PeopleFixture()
        let (_, link) = try await fixture.link(to: "ben@example.org", permission: .readOnly)
        let administration = administration(fixture)
        func report(_ person: String) async throws -> [String: ShareDecision] {
            let report = try await administration.permissions(of: person, in: Self.place)
            #expect(report.parts.count == 1)
            return Dictionary(uniqueKeysWithValues: report.parts[0].decisions.map { ($0.operation.rawValue, $0) })
        }
        let invited = try await report("ben@example.org")
        #expect(invited["read"]?.isAllowed == false && invited["read"]?.rule == .notAccepted && invited["read"]?.remedy != nil)
        let shared = try fixture.cloud.database(.shared, of: ConsoleFixture.journal, account: fixture.console.ben.id)
        _ = try await shared.acceptLink(link.token)
        let reader = try await report("ben@example.org")
        #expect(reader["read"]?.isAllowed == true && reader["update"]?.rule == .readOnly)
        // A person can be named in each way.
        let name = administration.userRecordName(ofAccount: fixture.console.ben.id, in: ConsoleFixture.journal)
        for person in [fixture.console.ben.id, name, "BEN@example.org"] {
            #expect(try await report(person) == reader, "\(person)")
        }
        let zone = try #require(try await shared.zones().first)
        let saved = try await shared.modify(
            ModifyRecordsRequest(zone: zone, operations: [.save(CloudRecord(CloudRecordID("x", in: zone), type: "Day"))]))
        guard case .failed(let error)? = saved.first else {
            Issue.record("a reader has written")
            return
        }
        #expect(error.code == .permissionFailure)
        #expect(try await report("anna@example.org").values.filter { $0.isAllowed }.count > 8)
        #expect(try await report("cleo@example.org")["read"]?.rule == .stranger)
        #expect(try await report("nobody@example.org")["read"]?.rule == .stranger)
        // An account that is switched off may do nothing, whatever the share says.
        var ben = fixture.console.ben
        ben.status = .restricted
        try await fixture.cloud.update(ben)
        let barred = try await administration.permissions(of: "ben@example.org", in: Self.place)
        #expect(barred.obstacle?.contains("restricted") == true)
        let page = try await fixture.console.browser(fixture.console.anna).get(
            "zones", Self.zone.merging(["person": "ben@example.org"]) { $1 })
        let shown = try #require(page.text.range(of: "Who may do what"))
        let rest = page.text[shown.upperBound...]
        #expect(rest.contains("it may do nothing") && rest.contains("✗ read") && !rest.contains("✓"))
    }

    @Test func `user record names link to the account for operators, and to nothing for developers`() async throws {
        let fixture = try await PeopleFixture()
        let (_, link) = try await fixture.link(to: "ben@example.org", permission: .readOnly)
        let ben = fixture.console.ben
        let shared = try fixture.cloud.database(.shared, of: ConsoleFixture.journal, account: ben.id)
        _ = try await shared.acceptLink(link.token)
        let zone = try #require(try await shared.zones().first)
        let browser = try await fixture.console.browser(fixture.console.anna)
        func account(_ email: String, _ name: String) -> String {
            let id = email.replacing("@", with: "%40")
            return "/console/account?c=\(ConsoleFixture.journal)&amp;e=development&amp;id=\(id)\"><code>\(name)</code></a>"
        }
        let name = StoredAccount.userRecordName(of: ben.id, in: ConsoleFixture.journal)
        let participants = await browser.get("zones", Self.zone.merging(["person": "ben@example.org"]) { $1 }).text
        #expect(participants.components(separatedBy: account(ben.email, name)).count == 3)
        // The owner of a shared zone, and the maker of a record.
        let owner = account("anna@example.org", zone.ownerName)
        let query = ["c": ConsoleFixture.journal, "db": "shared", "account": ben.email]
        #expect(await browser.get("zones", query).text.contains(owner))
        try await fixture.console.save("oslo", ["title": .string("Oslo")], by: ben)
        let record = ["c": ConsoleFixture.journal, "name": "oslo"]
        #expect(await browser.get("record", record).text.components(separatedBy: account(ben.email, name)).count == 3)
        let developer = try await fixture.console.browser(ben)
        let seen = await developer.get("record", record).text
        #expect(seen.contains("by <code>\(name)</code>") && !seen.contains("/console/account"))
    }

    @Test func `the report of an invited person without an account uses the address`() async throws {
        let fixture = try await PeopleFixture()
        _ = try await fixture.link(to: "dora@example.org")
        let report = try await administration(fixture).permissions(of: "Dora@example.org", in: Self.place)
        #expect(report.userRecordName == nil && report.parts.first?.participant?.acceptanceStatus == .pending)
        #expect(report.parts.first?.decisions.first?.rule == .notAccepted)
    }

    @Test func `the report covers records in no share and the public database`() async throws {
        let fixture = try await PeopleFixture()
        let database = try fixture.cloud.database(.private, of: ConsoleFixture.journal, account: fixture.console.anna.id)
        try await database.modifyZones(saving: [PeopleFixture.zone], deleting: [])
        let administration = administration(fixture)
        let alone = try await administration.permissions(of: "anna@example.org", in: Self.place)
        #expect(alone.parts.map(\.covers) == ["all records"] && alone.parts[0].decisions.allSatisfy { $0.rule == .ownRecords })
        let stranger = try await administration.permissions(of: "ben@example.org", in: Self.place)
        #expect(stranger.parts[0].decisions.allSatisfy { $0.rule == .stranger })
        let open = try await administration.permissions(of: "ben@example.org", in: RecordPlace(container: ConsoleFixture.journal))
        #expect(open.parts.map { $0.decisions.map(\.isAllowed) } == [[true, true, true, true], [true, true, false, false]])
    }

    @Test func `links are listed without their secrets, and revoked after a confirmation`() async throws {
        let fixture = try await PeopleFixture()
        let (share, link) = try await fixture.link(to: "ben@example.org")
        let browser = try await fixture.console.browser(fixture.console.anna)
        let page = await browser.get("zones", Self.zone)
        #expect(page.text.contains(link.id) && page.text.contains("ben@example.org") && !page.text.contains(link.token))
        let form = Self.zone.merging(["action": "revoke-link", "share": share.recordName, "link": link.id]) { $1 }
        let asked = try await browser.post("zones", form)
        #expect(asked.text.contains("<h1>Revoke the link?</h1>") && asked.status == 200)
        #expect(await fixture.follow(link.token).status == 200)
        #expect(try await browser.postConfirmed("zones", form).status == 303)
        #expect(await fixture.follow(link.token).status == 404)
        #expect(try await browser.postConfirmed("zones", form).status == 404)
        let entry = try #require(
            try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "admin.share.link.revoke" })
        #expect(entry.event.actor == fixture.console.anna.id && entry.event.account == fixture.console.anna.id)
        #expect(entry.event.subject == "private/Trips/\(share.recordName)/\(link.id)" && entry.event.before.hasPrefix("for "))
    }

    @Test func `a developer can't learn from a report in production which addresses have accounts`() async throws {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.console.browser(fixture.console.ben)
        let query = ["c": ConsoleFixture.journal, "e": "production", "shares": "1"]
        var texts: Set<String> = []
        for person in ["cleo@example.org", "nobody@example.org"] {
            let reply = await browser.get("zones", query.merging(["person": person]) { $1 })
            texts.insert(reply.text.replacing(person, with: ""))
        }
        #expect(texts.count == 1 && texts.first?.contains("by the user record name") == true)
        let name = "_" + String(repeating: "a", count: 32)
        #expect(await browser.get("zones", query.merging(["person": name]) { $1 }).text.contains("is known here as"))
    }

    @Test func `a developer can't learn from a shared zone in development which addresses have accounts`() async throws {
        let fixture = try await PeopleFixture()
        let known = "cleo@example.org"
        for person in [known, "nobody@example.org"] { _ = try await fixture.link(to: person) }
        // A developer sees only the zones of people who have data in the container.
        try await fixture.console.save("oslo", ["title": .string("Oslo")], by: fixture.console.anna, scope: .private)
        let developer = try await fixture.console.browser(fixture.console.ben)
        let page = await developer.get("zones", Self.zone)
        #expect(page.status == 200 && page.text.contains(">a user record name</span>"))
        let rows = page.text.withoutBreaks.matches(of: /<tr>.*?<\/tr>/.dotMatchesNewlines()).map { String($0.0) }
            .filter { $0.contains("Invited") }.map { $0.replacing(/(cleo|nobody)(@|&#64;)example\.org/, with: "") }
        #expect(rows.count == 2 && Set(rows).count == 1 && rows[0].contains("none yet"), "\(rows)")
        var texts: Set<String> = []
        for person in [known, "nobody@example.org"] {
            let reply = await developer.get("zones", Self.zone.merging(["person": person]) { $1 })
            texts.insert("\(reply.status) \(reply.text.replacing(person, with: ""))")
        }
        #expect(texts.count == 1 && texts.first?.contains("by the user record name") == true)
        // To an operator the answers differ.
        let browser = try await fixture.console.browser(fixture.console.anna)
        let shown = await browser.get("zones", Self.zone.merging(["person": "nobody@example.org"]) { $1 }).text
        #expect(shown.contains("has no account.") && shown.contains(">an address, or a user record name</span>"))
        let other = await browser.get("zones", Self.zone.merging(["person": known]) { $1 }).text
        #expect(other.contains("is known here as") && !other.contains("has no account."))
    }

    @Test func `a developer can't report or revoke in production, nor in another container`() async throws {
        let fixture = try await PeopleFixture()
        let browser = try await fixture.console.browser(fixture.console.ben)
        let production = Self.zone.merging(["e": "production", "person": "anna@example.org"]) { $1 }
        #expect(await browser.get("zones", production).status == 403)
        #expect(
            try await browser.postConfirmed(
                "zones", production.merging(["action": "revoke-link", "share": "a", "link": "b"]) { $1 }
            ).status == 403)
        #expect(await browser.get("zones", Self.zone.merging(["c": ConsoleFixture.other]) { $1 }).status == 404)
    }
}
