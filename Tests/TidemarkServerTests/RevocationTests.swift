import AsyncHTTPClient
import Foundation
import NIOCore
import TestServers
import TestSupport
import Testing
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres

/// Goal: a revocation in one place counts at every server from the next request on, however many requests share a look-up.
/// Method: two built servers over one database, with a flood of requests; sessions and accounts change past both.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct RevocationTests {
    private static let container = "iCloud.org.example.journal"

    private final class Flood: Sendable {
        let isDone = LockedValue(false)
    }

    private struct Answer: Equatable {
        let status: Int
        let isFound: Bool
    }

    private static func lookUp(at port: String, with token: String) async throws -> Answer {
        var request = HTTPClientRequest(
            url: "http://127.0.0.1:\(port)/database/1/\(container)/development/private/records/lookup")
        request.method = .POST
        request.headers.add(name: "Authorization", value: "Bearer \(token)")
        request.body = .bytes(ByteBuffer(string: #"{"records":[{"recordName":"none"}]}"#))
        let answer = try await StubbedServer.client.execute(request, timeout: .seconds(60))
        let text = String(buffer: try await answer.body.collect(upTo: 1 << 20))
        return Answer(status: Int(answer.status.code), isFound: text.contains("NOT_FOUND"))
    }

    @Test func `a suspended account and an ended session are refused at once by all servers, even during a flood`() async throws {
        let scratch = try Scratch()
        let address = try PostgresServer.shared().address(try PostgresServer.shared().makeDatabase())
        try FileManager.default.createDirectory(at: scratch["assets"], withIntermediateDirectories: true)
        let servers = try (0..<2).map { number in
            try Tool(named: "tidemark-server").start([
                "--database", address, "--assets", scratch["assets"].path, "--port", "0", "--port-file",
                scratch["port\(number)"].path, "--request-rate", "0", "--log-level", "error",
            ])
        }
        func port(_ number: Int) async throws -> String {
            let file = scratch["port\(number)"]
            let isListening = try await eventually { FileManager.default.fileExists(atPath: file.path) }
            try #require(isListening)
            return try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        }
        let ports = [try await port(0), try await port(1)]
        let database = PostgresDatabase(PostgresConfiguration(try PostgresAddress(address)))
        let accounts = Accounts(try await PostgresAccountStorage.open(database))
        let credentials = try CredentialStore(try await PostgresCredentialStorage.open(database))
        try await credentials.addContainer(Self.container)
        func session(of person: String) async throws -> (account: StoredAccount, token: SessionToken) {
            let account = try await accounts.add("\(person)@example.org", phone: nil, name: nil, quota: .max)
            return (
                account,
                try await credentials.makeSession(
                    account: account.id, container: Self.container, environment: .development, kind: .device)
            )
        }
        var (anna, token) = try await session(of: "anna")
        let other = try await session(of: "ben").token.text
        let flood = Flood()
        let good = Answer(status: 200, isFound: true)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    while !flood.isDone.withLock({ $0 }) {
                        let answer = try await Self.lookUp(at: ports[number % 2], with: other)
                        #expect(answer == good)
                    }
                }
            }
            for _ in 0..<15 {
                for port in ports { #expect(try await Self.lookUp(at: port, with: token.text) == good) }
                anna.status = .temporarilyUnavailable
                try await accounts.update(anna)
                for port in ports { #expect(try await Self.lookUp(at: port, with: token.text).status != 200) }
                anna.status = .available
                try await accounts.update(anna)
                for port in ports { #expect(try await Self.lookUp(at: port, with: token.text) == good) }
                try await credentials.endSession(id: token.session.id)
                for port in ports { #expect(try await Self.lookUp(at: port, with: token.text).status == 401) }
                token = try await credentials.makeSession(
                    account: anna.id, container: Self.container, environment: .development, kind: .device)
            }
            try await accounts.remove(anna)
            // The session exists, but its account was removed: AUTHENTICATION_REQUIRED.
            for port in ports { #expect(try await Self.lookUp(at: port, with: token.text).status == 421) }
            flood.isDone.withLock { $0 = true }
            try await group.waitForAll()
        }
        await database.close()
        for server in servers { #expect(await server.terminate() == 0) }
    }
}
