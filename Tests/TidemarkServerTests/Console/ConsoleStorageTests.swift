import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkConsole
@testable import TidemarkServer

/// Goal: the console works alike over a directory and over PostgreSQL. Method: one flow through forms and pages, over each.
@Suite(.timeLimit(.minutes(30))) struct ConsoleStorageTests {
    private static let container = "iCloud.org.example.journal"

    /// Signs in, and makes, finds, changes and deletes a record.
    private func flow(_ cloud: EmbeddedCloud, _ credentials: CredentialStore) async throws {
        try await credentials.addContainer(Self.container)
        let anna = try await cloud.addAccount("anna@example.org")
        try await credentials.setPassword("correct horse", of: anna.id)
        try await credentials.setOperator(anna.id, role: .operator)
        let console = Console(cloud, credentials) { email, _ in
            Console.Attempt(account: try await cloud.account(email), isKnown: false)
        } report: {
            Issue.record("\($0)")
        }
        let signedIn = await console.reply(
            to: ConsoleRequest(isPost: true, page: "sign-in", form: ["email": anna.email, "password": "correct horse"]))
        let cookie = String(try #require(signedIn.header("Set-Cookie")).prefix { $0 != ";" })
        func get(_ page: String, _ query: [String: String] = [:]) async -> ConsoleReply {
            await console.reply(to: ConsoleRequest(page: page, query: query, cookies: cookie))
        }
        let token = String(try #require(await get("").text.firstMatch(of: /name="token" value="([^"]+)"/)).1)
        func post(_ page: String, _ form: [String: String]) async -> ConsoleReply {
            await console.reply(
                to: ConsoleRequest(
                    isPost: true, page: page, form: form.merging(["token": token, "c": Self.container]) { $1 }, cookies: cookie))
        }
        let made = await post(
            "record", ["type": "City", "name": "oslo", "newName": "title", "newType": "string", "newValue": "Oslo ä"])
        #expect(made.status == 303, "\(made.text)")
        let query = ["c": Self.container, "type": "City"]
        #expect(await get("records", query).text.contains("Field &#39;recordName&#39; is not marked queryable"))
        #expect(await post("records", ["type": "City", "field": "recordName", "index": "queryable"]).status == 303)
        #expect(await get("records", query).text.contains("Oslo ä"))
        let edit = await get("record", ["c": Self.container, "name": "oslo", "edit": "1"]).text
        let tag = String(try #require(edit.firstMatch(of: /name="tag" value="([^"]+)"/)).1)
        let form = ["type": "City", "name": "oslo", "tag": tag, "is.title": "Christiania", "was.title": "Oslo ä"]
        #expect(await post("record", form).status == 303)
        #expect(await post("record", form.merging(["is.title": "Kristiania"]) { $1 }).status == 409)
        #expect(await get("zones", ["c": Self.container]).text.contains("_defaultZone"))
        for section in Section.allCases {
            #expect(await get(section.rawValue, ["c": Self.container]).status == 200, "\(section)")
        }
        try await credentials.record([
            SyncFailure(
                at: Timestamp.now(), operation: "records.modify", container: Self.container, environment: "development",
                account: anna.id, scope: .public, record: "os\0lo", recordType: "City", code: "BAD_REQUEST", reason: "too many ä")
        ])
        let errors = await get("activity", ["c": Self.container, "show": "failures", "account": anna.email]).text
        #expect(errors.contains("too many ä") && errors.contains("City:os\u{fffd}lo"))
        #expect(await get("", ["c": Self.container]).text.contains("1 record of 1 account was refused in the last hour."))
        #expect(await post("record", ["action": "delete", "type": "City", "name": "oslo", "confirmed": "1"]).status == 303)
        #expect(await get("record", ["c": Self.container, "name": "oslo"]).status == 404)
        let log = try await credentials.auditLog(container: Self.container).map {
            "\($0.event.action.rawValue) \($0.event.outcome)"
        }
        #expect(
            log == [
                "admin.records.delete done", "admin.records.save conflict", "admin.records.save done", "admin.schema.index done",
                "admin.records.save done",
            ])
        try await credentials.removeOperator(anna.id)
        #expect(await get("").status == 303)
    }

    @Test func `over a directory`() async throws { try await StoredClouds.overDirectory(flow) }

    @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"))
    func `over PostgreSQL`() async throws { try await StoredClouds.overPostgreSQL(flow) }
}
