import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkIdentity

/// Goal: an operator lists by a command the requests of devices that a running server has refused. Method: the tool as devices
/// and as the operator, and a server of the test's own.
@Suite(.timeLimit(.minutes(30))) struct SyncErrorCommandTests {
    private let scratch: Scratch
    private let served: ServedCloudSubject
    private let tool: Tool
    private static let password = "kurz vor Tromsø"

    init() async throws {
        (scratch, served, tool) = (try Scratch(), try await ServedCloudSubject.started(), try Tool())
        try await served.access.setPassword(Self.password, of: try #require(try await served.fixture.id("anna@example.org")))
    }

    private func path(_ name: String) -> String { scratch["\(name).tidemark"].path }

    @discardableResult
    private func run(_ words: String..., status: Int32 = 0, input: URL? = nil) async throws -> Tool.Result {
        let result = try await tool.run(words, input: input)
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        return result
    }

    /// Makes a device with a record, and signs it in.
    private func device(_ name: String, _ record: String) async throws {
        let records = try scratch.write(record + "\n", to: "\(name).jsonl")
        try await run("import", records.path, "--into", path(name), "--type", "Destination", "--id", "id", "--plain-ids")
        try await signIn(name)
    }

    private func signIn(_ name: String) async throws {
        try await run(
            "account", "sign-in", path(name), "--server", served.address.description, "--email", "anna@example.org",
            "--container",
            FaultyCloudFixture.container, "--password-stdin", input: try scratch.write(Self.password + "\n", to: "password"))
    }

    private struct Line: Decodable {
        let at, operation, container, environment, code, reason: String
        let account, recordType, record, session, device: String?
        let count: Int
    }

    /// The errors that the command lists, once a wanted one is among them: a server writes them within a second.
    private func errors(_ options: String..., until isWanted: (Line) -> Bool = { _ in true }) async throws -> [Line] {
        var lines: [Line] = []
        for _ in 0..<600 {
            let command = ["admin", "sync-errors", "--data", served.fixture.directory.path, "--json"] + options
            lines = try await tool.run(command).output.split(separator: "\n").map {
                try JSONDecoder().decode(Line.self, from: Data($0.utf8))
            }
            if lines.contains(where: isWanted) { break }
            try await Task.sleep(for: .milliseconds(50))
        }
        return lines
    }

    /// The errors that the command lists now.
    private func errorsNow(_ options: String...) async throws -> [Line] {
        let command = ["admin", "sync-errors", "--data", served.fixture.directory.path, "--json"] + options
        return try await tool.run(command).output.split(separator: "\n").map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
    }

    @Test func `records, disabled accounts and ended sessions that were refused are listed with their account`() async throws {
        let data = served.fixture.directory.path
        #expect(try await run("admin", "sync-errors", "--data", data).output.contains("no device was refused anything"))
        try await device("laptop", #"{"id":"senja","visits":3}"#)
        try await run("sync", path("laptop"))
        try await device("phone", #"{"id":"oslo","visits":"many"}"#)
        try await run("sync", path("phone"), status: 75)
        let first = try await errors { $0.record == "oslo" }
        let refused = try #require(first.first { $0.record == "oslo" })
        #expect(refused.account == "anna@example.org" && refused.recordType == "Destination" && refused.code == "BAD_REQUEST")
        #expect(refused.reason.contains("Invalid value for 'visits'") && refused.environment == "development")
        // The table has the same errors.
        let table = try await run("admin", "sync-errors", "--account", "anna@example.org", "--data", data).output
        #expect(table.contains("Destination:oslo") && table.contains("Invalid value for 'visits'"))
        #expect(table.contains(/container +environment +account +device +record/))
        let sender = try #require(refused.device ?? refused.session)
        #expect(table.contains("  development  anna@example.org  \(sender) "), "\(table)")
        #expect(try await errorsNow("--environment", "production").isEmpty)
        #expect(try await errorsNow("--account", "ben@example.org").isEmpty)
        #expect(try await errorsNow("--container", FaultyCloudFixture.container, "--limit", "1").count == 1)
        try await run("admin", "sync-errors", "--container", "nowhere", "--data", data, status: 66)
        try await run("admin", "sync-errors", "--limit", "0", "--data", data, status: 64)

        try await run("admin", "account", "set", "anna@example.org", "--status", "restricted", "--data", data)
        try await run("sync", path("laptop"), status: 69)
        let disabled = try await errors("--account", "anna@example.org") { $0.code == "AUTHENTICATION_REQUIRED" }
        #expect(disabled.contains { $0.code == "AUTHENTICATION_REQUIRED" && $0.reason == "the account is disabled" })
        try await run("admin", "account", "set", "anna@example.org", "--status", "available", "--data", data)
        try await run("admin", "session", "end", "--account", "anna@example.org", "--data", data)
        try await run("sync", path("laptop"), status: 69)
        let ended = try await errors("--account", "anna@example.org") { $0.code == "AUTHENTICATION_FAILED" }
        #expect(ended.contains { $0.code == "AUTHENTICATION_FAILED" && $0.reason == SessionFailure.revoked.reason })
        // Signing in again ends a session that has ended already, which is no error.
        try await signIn("laptop")
        try await run("sync", path("laptop"))
        // Once a later refusal is written, all earlier ones are, too.
        try await device("tablet", #"{"id":"bergen","visits":"few"}"#)
        try await run("sync", path("tablet"), status: 75)
        let all = try await errors { $0.record == "bergen" }
        #expect(all.contains { $0.record == "bergen" } && all.allSatisfy { $0.operation != "session.end" })
    }
}
