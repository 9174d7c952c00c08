import Foundation
import Logging
import NIOHTTP1
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkServer

/// Goal: what devices are refused is kept beside the requests, with its account, in bounds, and read back by whatever process. Method: a
/// writer whose rests the test ends, and a server over a connection, whose storage is read by another opening.
@Suite(.timeLimit(.minutes(10))) struct SyncFailureTests {
    private static let container = StubbedServer.container

    private static func failure(_ record: String, of account: String = "anna", at time: Int64 = 1) -> SyncFailure {
        SyncFailure(
            at: time, operation: "records.modify", container: container, environment: "development", account: account,
            scope: .private, record: record, code: "BAD_REQUEST", reason: "why")
    }

    /// What a writer has written, a list for each write, and what was logged.
    private final class Written: Sendable {
        private let writes = LockedValue<[[SyncFailure]]>([])
        private let lines = LockedValue<[String]>([])
        let fails = LockedValue(false)

        /// The writes so far, and what was logged.
        var all: [[SyncFailure]] { writes.withLock { $0 } }
        var log: String { lines.withLock { $0.joined() } }

        struct Failed: Error {}

        func writer(rest: @escaping @Sendable () async throws -> Void) -> SyncFailureWriter {
            let logger = Logger(label: "test") { [self] _ in
                LogfmtHandler(level: .debug) { line in self.lines.withLock { $0.append(line) } }
            }
            return SyncFailureWriter(
                logger,
                rest: rest,
                write: { [self] failures in
                    if fails.withLock({ $0 }) { throw Failed() }
                    writes.withLock { $0.append(failures) }
                })
        }
    }

    @Test func `a flood is one write after a rest, equal failures are one row, and what has no room is counted`() async throws {
        let written = Written()
        let writer = written.writer { try await Task.sleep(for: .seconds(600)) }
        for time in 1...50 { writer.record([Self.failure("same", at: Int64(time))]) }
        writer.record((0..<SyncFailureLimits.ofNobody + 20).map { Self.failure("n\($0)", of: "") })
        writer.record((0..<SyncFailureLimits.ofAccounts + 30).map { Self.failure("r\($0)") })
        #expect(written.all.isEmpty)
        await writer.finish()
        let writes = written.all
        try #require(writes.count == 1)
        #expect(writes[0].count == SyncFailureLimits.ofNobody + SyncFailureLimits.ofAccounts)
        let same = try #require(writes[0].first { $0.record == "same" })
        #expect(same.count == 50 && same.firstAt == 1 && same.at == 50)
        // 20 of nobody; of the account 30, and one for the first.
        #expect(written.log.contains("dropped=51"))
        // It begins again with the next, and rests before each write.
        writer.record([Self.failure("later")])
        await writer.finish()
        #expect(written.all.last?.map(\.record) == ["later"])
    }

    @Test func `a write that fails is logged, and the next one goes on`() async throws {
        let written = Written()
        written.fails.withLock { $0 = true }
        let writer = written.writer {}
        writer.record([Self.failure("lost")])
        await writer.finish()
        #expect(written.log.contains("could not be written"))
        written.fails.withLock { $0 = false }
        writer.record([Self.failure("kept")])
        await writer.finish()
        #expect(written.all.map { $0.map(\.record) } == [["kept"]])
    }

    private static let prefix = "/database/1/{container}/{environment}/{database}"
    private static let operations = [
        TidemarkServer.Operation("records.modify", .post, "\(prefix)/records/modify", isChanging: true) { _ in
            var reply = Reply.json(Array("{}".utf8))
            reply.failures = [
                Reply.Failure(
                    code: "BAD_REQUEST", reason: "'Trip' has no field 'note'", record: "p1", recordType: "Trip", zone: "Z"),
                Reply.Failure(code: "BAD_REQUEST", reason: "too large", record: "p2", recordType: "Trip", zone: "Z"),
            ]
            return reply
        },
        TidemarkServer.Operation("changes.database", .post, "\(prefix)/changes/database") { _ in .json(Array("{}".utf8)) },
    ]

    @Test func `a server writes what it refuses when it ends, logs each part, and names the account of a session that has ended`()
        async throws
    {
        try await StubbedServer.with(operations: Self.operations) { server in
            let anna = try #require(try await EmbeddedCloud(at: server.directory).account("anna@example.org"))
            let body = Array(#"{"email":"anna@example.org","password":"correct horse"}"#.utf8)
            let signIn = "/tidemark/1/\(Self.container)/development/session"
            let token = try #require(try await server.send(.POST, signIn, body: body).json["token"] as? String)
            let bearer: HTTPHeaders = ["Authorization": "Bearer \(token)"]
            let modify = server.path("records/modify", database: "private")
            for _ in 0..<2 { #expect(try await server.send(.POST, modify, headers: bearer).status == 200) }
            _ = try await server.access.endSessions(of: anna.id)
            let changes = server.path("changes/database", database: "private")
            #expect(try await server.send(.POST, changes, headers: bearer).status == 401)
            // A device that signs in anew ends the session that has ended.
            #expect(try await server.send(.POST, "\(signIn)/end", headers: bearer).status == 401)
            var altered = Array(token)
            altered[20] = altered[20] == "A" ? "B" : "A"
            #expect(try await server.send(.POST, changes, headers: ["Authorization": "Bearer \(String(altered))"]).status == 401)
            await server.shutDown()
            var found: [SyncFailure] = []
            for _ in 0..<1_000 where found.count < 4 {
                found = try await CredentialStore(at: server.directory).syncFailures(.init())
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(found.count == 4, "\(found)")
            let records = found.filter { $0.operation == "records.modify" }.sorted { $0.record < $1.record }
            #expect(records.map { "\($0.recordType):\($0.record) \($0.zone) \($0.count)" } == ["Trip:p1 Z 2", "Trip:p2 Z 2"])
            #expect(records.allSatisfy { $0.account == anna.id && $0.scope == .private && $0.environment == "development" })
            let sessions = found.filter { $0.operation == "changes.database" && !$0.account.isEmpty }
            #expect(sessions.map(\.account) == [anna.id] && sessions.first?.reason == SessionFailure.revoked.reason)
            // What was altered leads to nobody, whatever session it names.
            #expect(found.count { $0.operation == "changes.database" && $0.account.isEmpty } == 1)
            let log = server.logged
            let parts = log.split(separator: "\n").filter { $0.contains("message=refused") }
            #expect(
                parts.contains {
                    $0.contains("level=debug") && $0.contains("code=BAD_REQUEST") && $0.contains("type=Trip")
                        && $0.contains("has no field 'note'")
                }, "\(log)")
            #expect(log.contains("refused=\"BAD_REQUEST 2\""), "\(log)")
        }
    }
}
