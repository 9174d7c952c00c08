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

/// A value that a fixture shares with the closures that it passes on.
final class Box<Value: Sendable>: Sendable {
    private let value: LockedValue<Value>

    init(_ value: Value) { self.value = LockedValue(value) }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result { value.withLock { body(&$0) } }
}

/// A cloud with two containers, an operator and a developer, and its console.
struct ConsoleFixture {
    static let (journal, other) = ("iCloud.org.example.journal", "iCloud.org.example.other")
    static let password = "correct horse"

    let scratch: Scratch
    let time = Box<Int64>(1_800_000_000_000_000)
    let cloud: EmbeddedCloud
    let credentials: CredentialStore
    let console: Console
    /// An operator, a developer of the journal, and a person without a role.
    let anna, ben, cleo: StoredAccount
    let attempts = Box<[String]>([])
    let reports = Box<[String]>([])
    let changes = Box<[RecordChange]>([])

    /// - Parameter figures: The server's figures of its requests.
    init(figures: (any ServerFigures)? = nil) async throws {
        scratch = try Scratch()
        let directory = scratch["cloud"]
        cloud = try EmbeddedCloud(at: directory)
        credentials = try CredentialStore(at: directory, now: { [time] in time.withLock { $0 } }, passwordLogN: 4)
        for name in [Self.journal, Self.other] { try await credentials.addContainer(name) }
        anna = try await cloud.addAccount("anna@example.org")
        ben = try await cloud.addAccount("ben@example.org")
        cleo = try await cloud.addAccount("cleo@example.org", name: PersonName(givenName: "Cleo"))
        for account in [anna, ben, cleo] { try await credentials.setPassword(Self.password, of: account.id) }
        try await credentials.setOperator(anna.id, role: .operator)
        try await credentials.setOperator(ben.id, role: .developer, containers: [Self.journal])
        let note: @Sendable (RecordChange) -> Void = { [changes] change in changes.withLock { $0.append(change) } }
        let attempt: @Sendable (String, String) async throws -> Console.Attempt = { [cloud, attempts] email, _ in
            attempts.withLock { $0.append(email) }
            if email == "crowded@example.org" { throw Console.Delay(seconds: 7) }
            return Console.Attempt(account: try await cloud.account(email), isKnown: false)
        }
        console = Console(
            cloud, credentials, figures: figures, changed: note, attempt: attempt,
            report: { [reports] reason in reports.withLock { $0.append(reason) } })
    }

    func advance(minutes: Int64) { time.withLock { $0 += minutes * 60_000_000 } }

    /// Signs in as a browser does.
    func browser(_ account: StoredAccount, baseURL: String = "http://localhost:8080") async throws -> Browser {
        let reply = await console.reply(
            to: ConsoleRequest(
                isPost: true, page: "sign-in", form: ["email": account.email, "password": Self.password], origin: baseURL,
                fetchSite: "same-origin", userAgent: "Browser/1.0", address: "192.0.2.1", baseURL: baseURL))
        #expect(reply.status == 303, "\(reply.text)")
        let cookie = try #require(reply.header("Set-Cookie"))
        return Browser(fixture: self, cookie: String(cookie.prefix { $0 != ";" }), baseURL: baseURL)
    }

    func save(
        _ name: String, type: String = "City", _ fields: [String: CloudValue], by account: StoredAccount? = nil,
        scope: DatabaseScope = .public, in container: String = journal
    ) async throws {
        let database = try cloud.database(scope, of: container, account: (account ?? cleo).id)
        let record = CloudRecord(CloudRecordID(name, in: .default), type: type, fields: fields)
        let outcomes = try await database.modify(ModifyRecordsRequest(zone: .default, operations: [.save(record)]))
        for case .failed(let error) in outcomes { throw error }
    }

    /// Changes fields of a public record, as a device with its current version does.
    func change(_ name: String, _ fields: [String: CloudValue]) async throws {
        let there = try await record(name)
        let database = try cloud.database(.public, of: Self.journal, account: cleo.id)
        let record = CloudRecord(there.id, type: there.type, fields: fields, changeTag: there.changeTag)
        let outcomes = try await database.modify(ModifyRecordsRequest(zone: .default, operations: [.save(record)]))
        for case .failed(let error) in outcomes { throw error }
    }

    func record(_ name: String, in container: String = journal) async throws -> CloudRecord {
        let database = try cloud.database(.public, of: container, account: nil)
        return try #require(try await database.lookup([name], in: .default, desiredKeys: nil).first).get()
    }
}

extension String {
    /// The text of a page without the places at which long words break.
    var withoutBreaks: String { replacing("<wbr>", with: "") }
}

/// A browser in which a person is signed in.
struct Browser {
    let fixture: ConsoleFixture
    var cookie: String
    let baseURL: String

    private func request(
        _ page: String, isPost: Bool, _ query: [String: String], _ form: [String: String], _ files: [String: Data] = [:],
        isBackground: Bool = false
    ) -> ConsoleRequest {
        ConsoleRequest(
            isPost: isPost, page: page, query: query, form: form, files: files, cookies: "a=b; \(cookie)",
            origin: isPost ? baseURL : nil,
            fetchSite: isPost ? "same-origin" : "none", fetchMode: "navigate", isBackground: isBackground,
            userAgent: "Browser/1.0", address: "192.0.2.1", baseURL: baseURL)
    }

    func get(_ page: String, _ query: [String: String] = [:], isBackground: Bool = false) async -> ConsoleReply {
        await fixture.console.reply(to: request(page, isPost: false, query, [:], isBackground: isBackground))
    }

    /// Posts a form with the token that the pages have.
    func post(
        _ page: String, _ form: [String: String], files: [String: Data] = [:], token: String? = nil
    ) async throws -> ConsoleReply {
        var form = form
        if let token { form["token"] = token } else { form["token"] = try await self.token() }
        return await fixture.console.reply(to: request(page, isPost: true, [:], form, files))
    }

    /// Posts a form, and confirms if the page asks.
    func postConfirmed(_ page: String, _ form: [String: String]) async throws -> ConsoleReply {
        try await post(page, form.merging(["confirmed": "1", "password": ConsoleFixture.password]) { $1 })
    }

    /// The differences that the schema's page lists, in the value of its form.
    func listedDifferences() async throws -> String {
        let page = await get("schema", ["c": ConsoleFixture.journal]).text
        return String(try #require(page.firstMatch(of: /name="expected" value="([0-9a-f]+)"/)).1)
    }

    func token() async throws -> String {
        let text = await get("").text
        let match = try #require(text.firstMatch(of: /name="token" value="([^"]+)"/))
        return String(match.1)
    }
}
