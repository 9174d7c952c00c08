import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a developer sees a person's private records in production only with the person's consent and until it ends, and the log
/// says so. Method: the person's page, the console of a developer, and a clock that the test moves.
@Suite(.timeLimit(.minutes(30))) struct ConsentTests {
    private static let place = [
        "c": ConsoleFixture.journal, "e": "production", "db": "private", "account": "cleo@example.org", "type": "Note",
    ]

    /// Cleo has a record in production, and Ben is a developer there.
    private func fixture() async throws -> PeopleFixture {
        let fixture = try await PeopleFixture()
        let cloud = fixture.cloud
        try await cloud.addToSchema(["Note": ["text": FieldType(.string)]], of: ConsoleFixture.journal)
        try await cloud.setIndexes([.queryable], of: "recordName", in: "Note", container: ConsoleFixture.journal)
        try await cloud.deploySchema(of: ConsoleFixture.journal)
        let database = try cloud.database(
            .private, of: ConsoleFixture.journal, environment: .production, account: fixture.console.cleo.id)
        let record = CloudRecord(CloudRecordID("diary", in: .default), type: "Note", fields: ["text": .string("mine")])
        _ = try await database.modify(ModifyRecordsRequest(zone: .default, operations: [.save(record)]))
        return fixture
    }

    private static let consent = [
        "action": "consent", "container": ConsoleFixture.journal, "days": "7", "password": ConsoleFixture.password,
    ]

    @Test func `a developer sees records with consent until it ends, and each look is in the log`() async throws {
        let fixture = try await fixture()
        let (developer, cleo) = (
            try await fixture.console.browser(fixture.console.ben), try await fixture.browser(fixture.console.cleo)
        )
        func look() async -> ConsoleReply { await developer.get("records", Self.place) }
        #expect(await look().status == 403)
        #expect(try await cleo.post("", Self.consent).header("Location") == "/account?done=consent")
        let seen = await look()
        #expect(seen.status == 200 && seen.text.contains(">diary</a>"))
        // Consent is for one container, for production, and for one account.
        #expect(await developer.get("records", Self.place.merging(["account": "anna@example.org"]) { $1 }).status == 403)
        let saved = try await developer.post(
            "record", Self.place.merging(["name": "new", "newName": "text", "newType": "string", "newValue": "x"]) { $1 })
        #expect(saved.status == 303, "\(saved.text)")
        let log = try await fixture.credentials.auditLog(account: fixture.console.cleo.id).filter {
            $0.event.actor == fixture.console.ben.id
        }
        #expect(
            log.map { "\($0.event.action.rawValue) \($0.event.outcome)" } == [
                "admin.records.save done with consent", "admin.records.read done with consent",
            ])

        #expect(try await cleo.post("", ["action": "end-consent", "container": ConsoleFixture.journal]).status == 303)
        #expect(await look().status == 403)
        #expect(try await cleo.post("", Self.consent).status == 303)
        #expect(await look().status == 200)
        fixture.console.advance(minutes: 7 * 24 * 60)
        let later = try await fixture.console.browser(fixture.console.ben)
        #expect(await later.get("records", Self.place).status == 403)
        let entries = try await fixture.credentials.auditLog(account: fixture.console.cleo.id).filter {
            $0.event.action.rawValue == "account.consent"
        }
        #expect(entries.count == 3 && entries.last?.event.before == "" && entries[1].event.after == "")
        #expect(entries[0].event.container == "\(ConsoleFixture.journal)/production")
    }

    @Test func `with consent a developer sees why private records were refused, but nothing that others share`() async throws {
        let fixture = try await fixture()
        let (cleo, ben) = (fixture.console.cleo, fixture.console.ben)
        func failure(_ record: String, _ scope: DatabaseScope, _ reason: String) -> SyncFailure {
            SyncFailure(
                at: 1_800_000_000_000_000, operation: "records.modify", container: ConsoleFixture.journal,
                environment: "production", account: cleo.id, scope: scope, record: record, recordType: "Note",
                zone: CloudZoneID.default.zoneName, code: "BAD_REQUEST", reason: reason)
        }
        try await fixture.credentials.record([
            failure("diary", .private, "why the diary"), failure("letter", .private, "why the letter"),
            failure("stranger", .shared, "why of the owner"),
        ])
        let developer = try await fixture.console.browser(ben)
        let query = ["show": "failures", "c": ConsoleFixture.journal, "e": "production"]
        let name = StoredAccount.userRecordName(of: cleo.id, in: ConsoleFixture.journal)
        let link = [
            "c": ConsoleFixture.journal, "e": "production", "db": "private", "account": name,
            "zone": CloudZoneID.default.zoneName, "name": "diary",
        ]
        let hidden = await developer.get("activity", query).text
        #expect(hidden.contains("for operators, and for developers with the person’s consent"))
        #expect(hidden.contains("for operators: what is shared is its owner’s"))
        // The overview links only to reasons that the developer may see.
        let place = ["c": ConsoleFixture.journal]
        let overview = await developer.get("", place).text
        #expect(overview.contains("Why is for operators, and for developers with the person’s consent"))
        #expect(!overview.contains(">See why<"))
        let operators = try await fixture.console.browser(fixture.console.anna).get("", place).text
        #expect(operators.contains(">See why<"))
        #expect(!hidden.contains("why the") && !hidden.contains("why of the owner"))
        #expect(await developer.get("record", link).status == 403)
        func reads() async throws -> [String] {
            try await fixture.credentials.auditLog(account: cleo.id).filter { $0.event.actor == ben.id }.map {
                "\($0.event.action.rawValue) \($0.event.subject) \($0.event.outcome)"
            }
        }
        #expect(try await reads() == [])
        #expect(try await fixture.browser(cleo).post("", Self.consent).status == 303)
        let seen = await developer.get("activity", query).text
        #expect(seen.contains("why the diary") && seen.contains("why the letter"))
        #expect(await developer.get("", place).text.contains(">See why<"))
        #expect(!seen.contains("why of the owner") && !seen.contains("stranger"))
        // Each look makes one entry, so the page does not refresh by itself.
        #expect(try await reads() == ["admin.records.read sync errors done with consent"])
        #expect(!seen.contains("data-live>"))
        let record = await developer.get("record", link)
        #expect(record.status == 200 && record.text.contains("mine"))
    }

    @Test func `a developer sees in the log that private records changed, and their values only with consent`() async throws {
        let fixture = try await fixture()
        let (anna, ben) = (
            try await fixture.console.browser(fixture.console.anna), try await fixture.console.browser(fixture.console.ben)
        )
        let changed = try await anna.post(
            "record",
            Self.place.merging(["name": "letter", "newName": "text", "newType": "string", "newValue": "a secret"]) { $1 })
        #expect(changed.status == 303, "\(changed.text)")
        func log(_ browser: Browser) async -> String { await browser.get("activity", ["c": ConsoleFixture.journal]).text }
        #expect(await log(anna).contains("a secret"))
        let hidden = await log(ben)
        #expect(hidden.withoutBreaks.contains("admin.records.save") && !hidden.contains("a secret") && !hidden.contains("letter"))
        #expect(!hidden.contains(fixture.console.cleo.id) && !hidden.withoutBreaks.contains(fixture.console.cleo.email))
        let cleo = try await fixture.browser(fixture.console.cleo)
        #expect(try await cleo.post("", Self.consent).status == 303)
        #expect(await log(ben).contains("a secret"))
        #expect(try await cleo.post("", ["action": "end-consent", "container": ConsoleFixture.journal]).status == 303)
        #expect(await !log(ben).contains("a secret"))
    }

    @Test func `a developer sees in the log that an account signed in, and its device only with consent`() async throws {
        let fixture = try await fixture()
        let cleo = fixture.console.cleo.id
        for (account, password) in [(cleo, ConsoleFixture.password), (cleo, "wrong horse"), (nil, "wrong horse")] {
            _ = try await fixture.credentials.signIn(
                password, account: account, container: ConsoleFixture.journal, environment: .production, kind: .device,
                device: "phone of Cleo", as: "cleo@example.org")
        }
        func log(_ account: StoredAccount) async throws -> String {
            try await fixture.console.browser(account).get("activity", ["c": ConsoleFixture.journal]).text
        }
        let hidden = try await log(fixture.console.ben)
        #expect(hidden.contains("sign-in") && hidden.contains("wrong password") && !hidden.contains("phone of Cleo"))
        // For an address without an account the page is the same.
        let name = StoredAccount.userRecordName(of: cleo, in: ConsoleFixture.journal)
        #expect(hidden.withoutBreaks.components(separatedBy: name).count == 3 && !hidden.contains("unknown:"))
        #expect(try await log(fixture.console.anna).contains("phone of Cleo"))
        #expect(try await fixture.browser(fixture.console.cleo).post("", Self.consent).status == 303)
        #expect(try await log(fixture.console.ben).contains("phone of Cleo"))
    }

    @Test func `the consent of a share's participant lets a developer see nothing of its owner`() async throws {
        let fixture = try await fixture()
        let (cloud, anna, cleo) = (fixture.cloud, fixture.console.anna, fixture.console.cleo)
        let database = try cloud.database(.private, of: ConsoleFixture.journal, environment: .production, account: anna.id)
        let zone = CloudZoneID("Trips")
        try await database.modifyZones(saving: [zone], deleting: [])
        let record = CloudRecord(CloudRecordID("plan", in: zone), type: "Note", fields: ["text": .string("Anna's")])
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(record)]))
        let share = try await database.createShare(in: zone, coverage: .zone, title: nil, publicPermission: .none)
        let invited = try await database.changeShare(
            share.id, [.invite(.emailAddress(cleo.email), role: .privateUser, permission: .readWrite)])
        let participant = try #require(invited.participants.first { $0.role == .privateUser }).id
        let token = try await database.makeLink(to: share.id, for: participant).token
        let shared = try cloud.database(.shared, of: ConsoleFixture.journal, environment: .production, account: cleo.id)
        _ = try await shared.acceptLink(token)
        #expect(try await fixture.browser(cleo).post("", Self.consent).status == 303)
        let developer = try await fixture.console.browser(fixture.console.ben)
        let owner = StoredAccount.userRecordName(of: anna.id, in: ConsoleFixture.journal)
        let place = Self.place.merging(["db": "shared", "zone": "Trips", "owner": owner, "name": "plan"]) { $1 }
        #expect(await developer.get("record", place).status == 403)
        #expect(try await fixture.browser(anna).post("", Self.consent).status == 303)
        let seen = await developer.get("record", place)
        #expect(seen.status == 200 && seen.text.contains("plan"))
        let log = try await fixture.credentials.auditLog(account: anna.id)
        #expect(log.contains { $0.event.action.rawValue == "admin.records.read" && $0.event.actor == fixture.console.ben.id })
    }

    @Test func `consent needs the password, a valid period, and a container in which the person has data`() async throws {
        let fixture = try await fixture()
        let cleo = try await fixture.browser(fixture.console.cleo)
        for (change, status) in [
            (["password": "wrong horse"], 400), (["days": "365"], 400), (["days": ""], 400),
            (["container": ConsoleFixture.other], 404),
            (["container": ""], 404),
        ] {
            #expect(try await cleo.post("", Self.consent.merging(change) { $1 }).status == status, "\(change)")
        }
        #expect(try await cleo.post("", Self.consent, token: "none").status == 403)
        #expect(try await cleo.post("", ["action": "end-consent", "container": ConsoleFixture.journal]).status == 404)
        let page = await cleo.get().text
        #expect(page.contains("Without your consent, developers see none of your private records in production."))
        #expect(!page.contains("<em>development</em>"))
        // Development needs no consent, and the page says so.
        try await fixture.console.save("try-out", type: "Note", ["text": .string("x")], scope: .private)
        let open = await cleo.get().text
        #expect(open.contains("its developers see and change without asking: in \(ConsoleFixture.journal)."))
        let developer = try await fixture.console.browser(fixture.console.ben)
        let seen = await developer.get("records", Self.place.merging(["e": "development"]) { $1 })
        #expect(seen.status == 200 && seen.text.contains(">try-out</a>"))
        let log = try await fixture.credentials.auditLog(account: fixture.console.cleo.id)
        #expect(log.allSatisfy { $0.event.action.rawValue != "account.consent" })
    }

    @Test func `a consent entry that another account has written does not count`() async throws {
        let fixture = try await fixture()
        let until = Timestamp.text(microseconds: fixture.credentials.time + 3_600_000_000)
        for (actor, account) in [
            (fixture.console.ben.id, fixture.console.cleo.id), (fixture.console.cleo.id, fixture.console.ben.id),
            ("", fixture.console.cleo.id),
        ] {
            try await fixture.credentials.audit(
                AuditEvent(
                    .own("consent"), actor: actor, account: account, container: "\(ConsoleFixture.journal)/production",
                    after: until))
        }
        let developer = try await fixture.console.browser(fixture.console.ben)
        #expect(await developer.get("records", Self.place).status == 403)
    }

    @Test func `a developer can't learn which accounts exist`() async throws {
        let fixture = try await fixture()
        let developer = try await fixture.console.browser(fixture.console.ben)
        var texts: Set<String> = []
        for account in ["cleo@example.org", "nobody@example.org"] {
            let reply = await developer.get("records", Self.place.merging(["account": account]) { $1 })
            #expect(reply.status == 403)
            texts.insert(reply.text.replacing(account, with: "").replacing(account.replacing("@", with: "%40"), with: ""))
        }
        #expect(texts.count == 1)
    }
}
