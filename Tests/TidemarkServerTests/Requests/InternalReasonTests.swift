import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkWire

@testable import TidemarkIdentity
@testable import TidemarkPostgres
@testable import TidemarkServer

/// Goal: clients learn no host, file or statement of the server, and its log has everything. Method: operations that fail as
/// storages do, and a built server whose database and assets go away while requests of many kinds come.
@Suite(.timeLimit(.minutes(30))) struct InternalReasonTests {
    private static let secret = "db7.internal:5432, /var/lib/tidemark: SELECT fields"

    private static let failures: [String: @Sendable () -> any Error] = [
        "unreachable": { CloudError(postgres: PostgresError(.unreachable, secret)) },
        "refused": { CloudError(postgres: PostgresError(.refused, secret)) },
        "readOnly": { CloudError(postgres: PostgresError(.readOnly, secret)) },
        "lockTimeout": { CloudError(postgres: PostgresError(.lockTimeout, secret)) },
        "full": { CloudError(postgres: PostgresError(.full, secret)) },
        "commitUnknown": { CloudError(postgres: PostgresError(.commitUnknown, secret)) },
        "statement": { CloudError(postgres: PostgresError(.statement, secret)) },
        "credentials": { CredentialError(storage: CloudError(postgres: PostgresError(.unreachable, secret))) },
        "damaged": { CredentialError(.storage, secret) },
        "unknown": { PostgresError(.statement, secret) },
    ]

    @Test func `the answer to a storage's failure hides its reason, and the log has it`() async throws {
        let operations = [
            TidemarkServer.Operation("fails", .post, "/database/1/{container}/{environment}/{database}/fails") { call in
                throw Self.failures[call.query["how"] ?? ""]!()
            },
            TidemarkServer.Operation("items", .post, "/database/1/{container}/{environment}/{database}/items") { call in
                var dialect = WireDialect(isExtended: true)
                dialect.onInternalReason = call.onInternalReason
                let error = CloudError(postgres: PostgresError(.unreachable, "items: \(Self.secret)"))
                return .object { json in
                    json.list("records") { json in for _ in 0..<3 { json.object { error.writeMembers(&$0, dialect) } } }
                }
            },
        ]
        try await StubbedServer.with(operations: operations) { server in
            for how in Self.failures.keys {
                let before = server.logged.count
                let answer = try await server.send(.POST, server.path("fails", query: "\(server.api)&how=\(how)"))
                #expect([500, 503].contains(answer.status), "\(how): \(answer.status)")
                #expect((answer.status == 503) == (answer.headers.first(name: "Retry-After") != nil), "\(how)")
                for part in ["internal", "5432", "/var", "SELECT", "PostgresError"] {
                    #expect(!answer.text.contains(part), "\(how): \(answer.text)")
                }
                let logged = String(server.logged.dropFirst(before))
                #expect(logged.components(separatedBy: Self.secret).count == 2, "\(how): \(logged)")
            }
            // A failure that is common to all items is logged once.
            let before = server.logged.count
            let answer = try await server.send(.POST, server.path("items", query: server.api))
            #expect(answer.text.components(separatedBy: "TRY_AGAIN_LATER").count == 4 && !answer.text.contains("internal"))
            #expect(String(server.logged.dropFirst(before)).components(separatedBy: "items: \(Self.secret)").count == 2)
        }
    }

    private struct Request: Sendable {
        let method: HTTPMethod
        let path: String
        var type = "application/json"
        var body: String?
    }

    private static let container = "iCloud.org.example.journal"
    private static let requests: [Request] = {
        let database = "/database/1/\(container)/development/private"
        return [
            Request(method: .POST, path: "\(database)/records/lookup", body: #"{"records":[{"recordName":"none"}]}"#),
            Request(method: .POST, path: "\(database)/records/query", body: #"{"query":{"recordType":"Note"}}"#),
            Request(
                method: .POST, path: "\(database)/records/modify",
                body:
                    #"{"operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note","fields":{}}}]}"#),
            Request(method: .GET, path: "\(database)/zones/list"),
            Request(method: .POST, path: "\(database)/changes/database", body: "{}"),
            Request(
                method: .POST, path: "\(database)/changes/zone", body: #"{"zones":[{"zoneID":{"zoneName":"_defaultZone"}}]}"#),
            Request(
                method: .POST, path: "\(database)/zones/modify",
                body: #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"Zone"}}}]}"#),
            Request(method: .POST, path: "\(database)/subscriptions/list", body: "{}"),
            Request(method: .GET, path: "\(database)/users/current"),
            Request(
                method: .POST, path: "/tidemark/1/\(container)/development/session",
                body: #"{"email":"anna@example.org","password":"correct horse"}"#),
            Request(method: .GET, path: "/signin?for=x"),
            Request(method: .GET, path: "/console"),
            Request(method: .GET, path: "/console/sign-in"),
            Request(
                method: .POST, path: "/console/sign-in", type: "application/x-www-form-urlencoded",
                body: "email=anna%40example.org&password=correct+horse"),
            Request(method: .GET, path: "/ready"),
        ]
    }()

    @Test(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"))
    func `while the database is unreachable, no answer of a server names its address`() async throws {
        let postgres = try PostgresServer()
        defer { postgres.stop() }
        let scratch = try Scratch()
        let (assets, file) = (scratch["assets"], scratch["port"])
        try FileManager.default.createDirectory(at: assets, withIntermediateDirectories: true)
        let name = try postgres.makeDatabase()
        let address = postgres.address(name)
        let server = try Tool(named: "tidemark-server").start([
            "--database", address, "--assets", assets.path, "--port", "0", "--port-file", file.path, "--request-rate", "0",
            "--log-level", "error",
        ])
        let isListening = try await eventually { FileManager.default.fileExists(atPath: file.path) }
        try #require(isListening)
        let port = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        let database = PostgresDatabase(PostgresConfiguration(try PostgresAddress(address)))
        let account = try await Accounts(try await PostgresAccountStorage.open(database))
            .add("anna@example.org", phone: nil, name: nil, quota: .max)
        let credentials = try CredentialStore(try await PostgresCredentialStorage.open(database), passwordLogN: 4)
        try await credentials.addContainer(Self.container)
        try await credentials.setPassword("correct horse", of: account.id)
        let token = try await credentials.makeSession(
            account: account.id, container: Self.container, environment: .development, kind: .device)
        await database.close()
        @Sendable func send(_ wanted: Request) async throws -> (status: Int, text: String) {
            var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)\(wanted.path)")
            request.method = wanted.method
            request.headers.add(name: "Authorization", value: "Bearer \(token.text)")
            request.headers.add(name: "Content-Type", value: wanted.type)
            request.headers.add(name: "Origin", value: "http://127.0.0.1:\(port)")
            if let body = wanted.body { request.body = .bytes(ByteBuffer(string: body)) }
            let answer = try await StubbedServer.client.execute(request, timeout: .seconds(120))
            return (Int(answer.status.code), String(buffer: try await answer.body.collect(upTo: 1 << 20)))
        }
        #expect(try await send(Self.requests[0]).status == 200)
        postgres.stop()
        let answers = try await withThrowingTaskGroup(of: (String, Int, String).self) { group in
            for request in Self.requests {
                group.addTask {
                    let answer = try await send(request)
                    return ("\(request.method) \(request.path)", answer.status, answer.text)
                }
            }
            return try await group.reduce(into: [(String, Int, String)]()) { $0.append($1) }
        }
        #expect(answers.count { $0.1 == 503 } >= 8, "\(answers.map { "\($0.0): \($0.1)" })")
        for (request, status, text) in answers {
            let parts = [
                ":\(postgres.port)", "port \(postgres.port)", name, "tidemark@", "PostgreSQL", "onnection refused", "SELECT",
                scratch.url.path,
            ]
            for part in parts {
                #expect(!text.contains(part), "\(request): \(status) \(text)")
            }
        }
        #expect(await server.terminate() == 0)
    }
}
