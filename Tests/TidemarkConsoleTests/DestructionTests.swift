import Foundation
import TestSupport
import Testing
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole

/// Goal: a form that deletes much asks for the password each time, deletes what it says and nothing else, and is in the log.
/// Method: forms, and the cloud before and after.
@Suite(.timeLimit(.minutes(30))) struct DestructionTests {
    private static let form = ["c": ConsoleFixture.journal, "action": "reset"]

    /// Public and private records, a shared zone, and a deployed schema that lacks a field of development.
    private func fixture() async throws -> PeopleFixture {
        let fixture = try await PeopleFixture()
        let cloud = fixture.cloud
        let console = fixture.console
        try await console.save("oslo", ["title": .string("Oslo")])
        try await cloud.setIndexes([.queryable, .sortable], of: "title", in: "City", container: ConsoleFixture.journal)
        try await cloud.deploySchema(of: ConsoleFixture.journal)
        try await console.save("odda", ["title": .string("Odda"), "stars": .int64(2)], by: console.anna)
        try await console.save("diary", type: "Note", ["text": .string("x")], scope: .private)
        _ = try await fixture.link(to: "ben@example.org")
        let database = try cloud.database(.private, of: ConsoleFixture.journal, account: console.anna.id)
        let day = CloudRecord(CloudRecordID("day", in: PeopleFixture.zone), type: "Day", fields: ["text": .string("x")])
        _ = try await database.modify(ModifyRecordsRequest(zone: PeopleFixture.zone, operations: [.save(day)]))
        // Records in production and in another container stay.
        let production = try cloud.database(
            .public, of: ConsoleFixture.journal, environment: .production, account: console.cleo.id)
        let city = CloudRecord(CloudRecordID("bergen", in: .default), type: "City", fields: ["title": .string("Bergen")])
        _ = try await production.modify(ModifyRecordsRequest(zone: .default, operations: [.save(city)]))
        try await console.save("other", ["title": .string("x")], in: ConsoleFixture.other)
        return fixture
    }

    private func records(
        _ cloud: EmbeddedCloud, _ environment: StoreEnvironment, of container: String = ConsoleFixture.journal
    ) async throws -> Int {
        try await cloud.totals(of: container, environment: environment).records
    }

    @Test func `resetting development deletes all its records, and makes its schema that of production`() async throws {
        let fixture = try await fixture()
        let cloud = fixture.cloud
        let browser = try await fixture.console.browser(fixture.console.ben)
        // The password is asked for each time.
        #expect(try await browser.post("schema", Self.form).text.contains("Your password"))
        for password in ["", "wrong horse"] {
            let refused = try await browser.post("schema", Self.form.merging(["confirmed": "1", "password": password]) { $1 })
            #expect(refused.status == 403)
        }
        // The record of a share counts as well.
        #expect(try await records(cloud, .development) >= 4)
        #expect(try await browser.postConfirmed("schema", Self.form).header("Location")?.contains("done=reset") == true)
        #expect(try await records(cloud, .development) == 0)
        #expect(try await records(cloud, .production) == 1)
        #expect(try await records(cloud, .development, of: ConsoleFixture.other) == 1)
        let database = try cloud.database(.private, of: ConsoleFixture.journal, account: fixture.console.anna.id)
        #expect(try await !database.zones().map(\.zoneName).contains(PeopleFixture.zone.zoneName))
        let schema = try await cloud.schema(of: ConsoleFixture.journal)
        #expect(schema.types.keys.sorted() == ["City"] && schema.types["City"]?.fields.keys.sorted() == ["title"])
        #expect(schema.types["City"]?.indexes(of: "title") == [.queryable, .sortable])
        let entry = try #require(
            try await fixture.credentials.auditLog().first { $0.event.action.rawValue == "admin.schema.reset" })
        #expect(entry.event.actor == fixture.console.ben.id && entry.event.subject == "with 4 records in 1 zone")
        #expect(entry.event.before.contains("stars int64") && !entry.event.after.contains("stars"))

        // It was entered just now, and is asked for all the same.
        let again = try await browser.post("schema", Self.form.merging(["confirmed": "1"]) { $1 })
        #expect(again.status == 403)
        // The environment can be used as before, indexes included.
        try await fixture.console.save("odda", ["title": .string("Odda"), "stars": .string("many")])
        let query = ["c": ConsoleFixture.journal, "type": "City", "f0": "title", "o0": "EQUALS", "v0": "Odda"]
        #expect(await browser.get("records", query).text.contains(">odda</a>"))
        try await database.modifyZones(saving: [PeopleFixture.zone], deleting: [])
        #expect(try await database.zones().map(\.zoneName).contains(PeopleFixture.zone.zoneName))
    }

    @Test func `a developer can't reset another container`() async throws {
        let fixture = try await fixture()
        let browser = try await fixture.console.browser(fixture.console.ben)
        #expect(try await browser.postConfirmed("schema", Self.form.merging(["c": ConsoleFixture.other]) { $1 }).status == 404)
        let administration = Administration(
            fixture.cloud, fixture.credentials,
            by: .console(
                try #require(try await fixture.credentials.operatorRole(of: fixture.console.ben.id)), address: "192.0.2.1"))
        await #expect(throws: AdministrationError.self) { try await administration.resetDevelopment(of: ConsoleFixture.other) }
        #expect(try await records(fixture.cloud, .development, of: ConsoleFixture.other) == 1)
    }

    @Test func `an operator downloads all data of an account with the password, and the log says so`() async throws {
        let fixture = try await fixture()
        let form = ["id": "cleo@example.org", "action": "export"]
        let browser = try await fixture.console.browser(fixture.console.anna)
        let asked = try await browser.post("account", form)
        #expect(asked.text.contains("<h1>Export all data of cleo@example.org?</h1>"))
        let reply = try await browser.postConfirmed("account", form)
        #expect(reply.type == "application/x-tar" && reply.header("Content-Disposition")?.hasPrefix("attachment") == true)
        guard case .pieces(let count, let read) = reply.body else {
            Issue.record("no file")
            return
        }
        var bytes = Data()
        while Int64(bytes.count) < count { bytes += try await read(Int64(bytes.count), 100_000) }
        let archive = String(decoding: bytes, as: UTF8.self)
        #expect(archive.contains("cleo@example.org") && archive.contains("diary") && !archive.contains("anna@example.org"))
        let entry = try #require(try await fixture.credentials.auditLog().first)
        #expect(entry.event.action.rawValue == "admin.account.export" && entry.event.account == fixture.console.cleo.id)
        #expect(entry.event.actor == fixture.console.anna.id)
        #expect(try await fixture.console.browser(fixture.console.ben).postConfirmed("account", form).status == 403)
    }

    @Test func `removing a field of existing records needs a marked box, and the question names their owners`() async throws {
        let fixture = try await ConsoleFixture()
        try await fixture.save("oslo", ["stars": .int64(5), "title": .string("Oslo")])
        for account in [fixture.anna, fixture.cleo] {
            try await fixture.save("mine", ["stars": .int64(1)], by: account, scope: .private)
        }
        let browser = try await fixture.browser(fixture.ben)
        let form = ["c": ConsoleFixture.journal, "action": "remove", "type": "City", "field": "stars"]
        let asked = try await browser.post("schema", form).text
        #expect(asked.contains("3 records, 2 of 2 accounts and 1 of the public database have it."))
        #expect(asked.contains("devices that hold values of int64 are refused then"))
        #expect(asked.contains("name=\"marked\" value=\"1\" required>"))
        // The password alone is not enough.
        let refused = try await browser.postConfirmed("schema", form)
        #expect(refused.status == 400 && refused.text.contains("mark the box"))
        #expect(try await fixture.cloud.schema(of: ConsoleFixture.journal).types["City"]?.fields["stars"] != nil)
        let marked = form.merging(["marked": "1"]) { $1 }
        #expect(try await browser.postConfirmed("schema", marked).header("Location")?.contains("done=remove") == true)
        #expect(try await fixture.cloud.schema(of: ConsoleFixture.journal).types["City"]?.fields["stars"] == nil)
        // A field without records is removed without the box.
        try await fixture.cloud.addToSchema(["City": ["empty": FieldType(.string)]], of: ConsoleFixture.journal)
        let empty = form.merging(["field": "empty"]) { $1 }
        let simple = try await browser.post("schema", empty).text
        #expect(simple.contains("No record has it.") && !simple.contains("name=\"marked\""))
        #expect(try await browser.postConfirmed("schema", empty).status == 303)
        // The field of edit times is of use to devices only.
        try await fixture.cloud.addToSchema(
            ["City": [CloudRecord.editedField: FieldType(.string)]], of: ConsoleFixture.journal)
        let page = await browser.get("schema", ["c": ConsoleFixture.journal]).text
        #expect(page.contains("Remove<span class=\"hidden\"> title</span>"))
        #expect(!page.contains("Remove<span class=\"hidden\"> \(CloudRecord.editedField)</span>"))
    }

    @Test func `the page to delete an account says how much is deleted, and that copies on its devices stay`() async throws {
        let fixture = try await PeopleFixture()
        let (cloud, anna, ben) = (fixture.cloud, fixture.console.anna, fixture.console.ben)
        let token = try await fixture.link(to: ben.email).link.token
        // A person who is only invited has no copies.
        _ = try await fixture.link(to: "cleo@example.org")
        _ = try await cloud.database(.shared, of: ConsoleFixture.journal, account: ben.id).acceptLink(token)
        let database = try cloud.database(.private, of: ConsoleFixture.journal, account: anna.id)
        let days = ["a", "b"].map { name in
            RecordOperation.save(
                CloudRecord(CloudRecordID(name, in: PeopleFixture.zone), type: "Day", fields: ["text": .string("x")]))
        }
        _ = try await database.modify(ModifyRecordsRequest(zone: PeopleFixture.zone, operations: days))
        try await fixture.credentials.setOperator(ben.id, role: .operator)
        let counts = "private databases have 2 records and 1 share. 1 participant loses access to what"
        let form = ["id": anna.email, "action": "remove"]
        let asked = try await fixture.console.browser(ben).post("account", form).text
        #expect(asked.contains("Its \(counts) it shares") && asked.contains("What its devices have stays there."))
        #expect(!asked.contains("Devices that synchronise later"))
        let own = try await fixture.browser(anna).get("delete").text
        #expect(own.contains("Your \(counts) you share") && own.contains("What your devices have stays there."))
    }

    @Test func `removing a second factor says whether there was one`() async throws {
        let fixture = try await PeopleFixture()
        let (credentials, cleo) = (fixture.credentials, fixture.console.cleo)
        let role = try #require(try await credentials.operatorRole(of: fixture.console.anna.id))
        let layer = Administration(fixture.cloud, credentials, by: .console(role, address: "192.0.2.1"))
        #expect(try await !layer.removeSecondFactor(of: cleo.email).hadOne)
        let made = credentials.newSecondFactor(of: cleo.id)
        let code = TimeCode.code(try PersonPageTests.bytes(made.secret), step: credentials.time / 30_000_000)
        _ = try #require(try await credentials.setSecondFactor(of: cleo.id, to: made.form, code: code))
        #expect(try await layer.removeSecondFactor(of: cleo.email).hadOne)
        #expect(try await !layer.removeSecondFactor(of: cleo.email).hadOne)
        let entries = try await credentials.auditLog().filter { $0.event.action.rawValue == "admin.second-factor.remove" }
        #expect(entries.map(\.event.before) == ["set up, 8 recovery codes left"])
    }

    @Test func `the page of an account shows its second factor, and removes it together with all sessions`() async throws {
        let fixture = try await PeopleFixture()
        let (credentials, cleo) = (fixture.credentials, fixture.console.cleo)
        let anna = try await fixture.console.browser(fixture.console.anna)
        let id = ["id": cleo.email]
        let without = await anna.get("account", id).text
        #expect(without.contains("<dt>Second factor</dt><dd>none</dd>") && !without.contains("Take away the second factor"))
        let made = credentials.newSecondFactor(of: cleo.id)
        let code = TimeCode.code(try PersonPageTests.bytes(made.secret), step: credentials.time / 30_000_000)
        let recovery = try #require(try await credentials.setSecondFactor(of: cleo.id, to: made.form, code: code))
        #expect(try await credentials.useSecondFactor(of: cleo.id, code: recovery[0]))
        let device = try await credentials.makeSession(
            account: cleo.id, container: ConsoleFixture.journal, environment: .development, kind: .device)
        let page = await anna.get("account", id).text
        #expect(page.contains("set up, 7 recovery codes left") && page.contains("Take away the second factor…</button>"))
        let link = try await anna.postConfirmed("account", id.merging(["action": "link"]) { $1 }).text
        #expect(link.contains("The second factor stays"))
        let form = id.merging(["action": "second-factor"]) { $1 }
        #expect(try await anna.post("account", form).text.contains("All sessions of the account end."))
        #expect(try await credentials.hasSecondFactor(cleo.id))
        // A password that was entered just now does not suffice.
        let unasked = try await anna.post("account", form.merging(["confirmed": "1"]) { $1 })
        #expect(unasked.status == 403 && unasked.text.contains("The password is wrong."))
        #expect(try await credentials.hasSecondFactor(cleo.id))
        #expect(try await anna.postConfirmed("account", form).status == 303)
        #expect(try await !credentials.hasSecondFactor(cleo.id))
        #expect(try await credentials.session(device.text) == .failure(.revoked))
        #expect(try await anna.postConfirmed("account", form).status == 404)
        let event = try #require(
            try await credentials.auditLog(account: cleo.id).map(\.event).first { event in
                event.action.rawValue == "admin.second-factor.remove"
            })
        #expect(event.actor == fixture.console.anna.id && event.after == "none")
        // Only operators may do this.
        #expect(try await fixture.console.browser(fixture.console.ben).postConfirmed("account", form).status == 403)
    }

    @Test func `a developer can't call any of the operators' functions`() async throws {
        let fixture = try await PeopleFixture()
        let role = try #require(try await fixture.credentials.operatorRole(of: fixture.console.ben.id))
        let layer = Administration(fixture.cloud, fixture.credentials, by: .console(role, address: "192.0.2.1"))
        let name = fixture.console.cleo.id
        let calls: [(String, () async throws -> Void)] = [
            ("addContainer", { try await layer.addContainer("new") }),
            ("removeContainer", { try await layer.removeContainer(ConsoleFixture.journal) }),
            ("rotateSecret", { _ = try await layer.rotateSecret(graceDays: 0) }),
            ("sessions", { _ = try await layer.sessions() }),
            ("signOutEverywhere", { _ = try await layer.signOutEverywhere(name) }),
            ("endSession", { try await layer.endSession("x") }),
            ("endAllSessions", { _ = try await layer.endAllSessions() }),
            ("addAccount", { _ = try await layer.addAccount("new@example.org", password: nil) }),
            ("pageSessions", { _ = try await layer.pageSessions() }), ("waysIn", { _ = try await layer.waysIn(to: name) }),
            ("disconnectIdentity", { _ = try await layer.disconnectIdentity("x", of: name, evenIfLast: true) }),
            ("update", { _ = try await layer.update(name) { $0.quota = 1 } }),
            ("setPassword", { _ = try await layer.setPassword("another horse", of: name) }),
            ("passwordLink", { _ = try await layer.passwordLink(of: name) }),
            ("removeWithData", { _ = try await layer.removeWithData(name) }),
            ("holdings", { _ = try await layer.holdings(of: name) }),
            ("removeIfUnused", { try await layer.removeIfUnused(name) }),
            ("recountUsage", { _ = try await layer.recountUsage() }),
            ("archive", { _ = try await layer.archive(of: name) }),
            ("export", { _ = try await layer.export(fixture.console.cleo, to: fixture.console.scratch.url) }),
            ("setOperator", { _ = try await layer.setOperator(name, role: .operator) }),
            ("removeOperator", { _ = try await layer.removeOperator(name) }),
            ("removeSecondFactor", { _ = try await layer.removeSecondFactor(of: name) }),
            ("accounts", { _ = try await layer.accounts() }),
            ("details", { _ = try await layer.details(of: name) }), ("auditLog", { _ = try await layer.auditLog() }),
            ("syncFailures", { _ = try await layer.syncFailures() }),
        ]
        for (name, call) in calls {
            let error = await #expect(throws: AdministrationError.self, "\(name)") { try await call() }
            #expect(error?.code == .forbidden, "\(name)")
        }
        #expect(try await fixture.credentials.auditLog().allSatisfy { $0.event.actor != fixture.console.ben.id })
    }
}
