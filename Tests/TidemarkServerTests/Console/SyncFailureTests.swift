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

/// Goal: requests of devices that are refused are stored with their accounts, without delaying requests, within limits, and any
/// process can read them. Method: a writer whose pauses the test ends, and a server over a connection, whose storage another
/// opening reads.
@Suite(.timeLimit(.minutes(30))) struct SyncFailureTests {
    private static let container = StubbedServer.container

    private static func failure(_ record: String, of account: String = "anna", at time: Int64 = 1) -> SyncFailure {
        SyncFailure(
            at: time, operation: "records.modify", container: container, environment: "development", account: account,
            scope: .private, record: record, code: "BAD_REQUEST", reason: "why")
    }

    /// What a writer has written, as a list for each write, and what was logged.
    private final class Written: Sendable {
        private let writes = LockedValue<[[SyncFailure]]>([])
        private let lines = LockedValue<[String]>([])
        let fails = LockedValue(false)
        /// How long a write takes.
        let time = LockedValue(Duration.zero)

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
                    let duration = time.withLock { $0 }
                    if duration > .zero { try await Task.sleep(for: duration) }
                    if fails.withLock({ $0 }) { throw Failed() }
                    writes.withLock { $0.append(failures) }
                })
        }
    }

    @Test func `a flood makes one write after a pause, equal failures share a row, and dropped ones are counted`() async throws {
        let written = Written()
        let writer = written.writer { try await Task.sleep(for: .seconds(600)) }
        for time in 1...50 { writer.record([Self.failure("same", at: Int64(time))]) }
        writer.record((0..<SyncFailureLimits.ofNobody + 20).map { Self.failure("n\($0)", of: "") })
        writer.record((0..<SyncFailureLimits.ofAccounts + 30).map { Self.failure("r\($0)", of: "a\($0 % 20)") })
        #expect(written.all.isEmpty)
        await writer.finish()
        let writes = written.all
        try #require(writes.count == 1)
        #expect(writes[0].count == SyncFailureLimits.ofNobody + SyncFailureLimits.ofAccounts)
        let same = try #require(writes[0].first { $0.record == "same" })
        #expect(same.count == 50 && same.firstAt == 1 && same.at == 50)
        // 20 without an account are dropped; of accounts 30, and one more for the first account.
        #expect(written.log.contains("dropped=51"))
        // The next failure is written again, after a pause.
        writer.record([Self.failure("later")])
        await writer.finish()
        #expect(written.all.last?.map(\.record) == ["later"])
    }

    @Test func `one account takes no room from others, and long texts are truncated before they wait`() async throws {
        let written = Written()
        let writer = written.writer { try await Task.sleep(for: .seconds(600)) }
        var huge = Self.failure(String(repeating: "ä", count: 1_000_000))
        huge.reason = String(repeating: "x", count: 1_000_000)
        writer.record([huge])
        writer.record((0..<SyncFailureLimits.ofAccount + 6).map { Self.failure("r\($0)") })
        writer.record([Self.failure("other", of: "ben")])
        await writer.finish()
        let rows = try #require(written.all.first)
        #expect(rows.count == SyncFailureLimits.ofAccount + 1 && rows.contains { $0.account == "ben" })
        #expect(written.log.contains("dropped=7"))
        let cut = try #require(rows.first { $0.record.hasPrefix("ä") })
        #expect(cut.record.utf8.count == 254 && cut.reason.utf8.count == 1_000)
    }

    @Test func `refused sign-ins and other waiting failures take no room from each other`() async throws {
        let written = Written()
        let writer = written.writer { try await Task.sleep(for: .seconds(600)) }
        func signIn(_ account: String) -> SyncFailure {
            var failure = Self.failure("", of: "")
            failure.operation = SyncFailure.signInOperation
            failure.sender = SyncFailure.sender(ofSignInTo: account)
            return failure
        }
        writer.record((0..<SyncFailureLimits.ofSignIns + 9).map { signIn("a\($0)") })
        writer.record((0..<SyncFailureLimits.ofNobody).map { Self.failure("n\($0)", of: "") })
        // They don't count among those of accounts either.
        writer.record((0..<SyncFailureLimits.ofAccounts).map { Self.failure("r\($0)", of: "a\($0 % 20)") })
        await writer.finish()
        let rows = try #require(written.all.first)
        #expect(rows.count(where: \.isSignInOfNobody) == SyncFailureLimits.ofSignIns)
        #expect(rows.count { $0.record.hasPrefix("n") } == SyncFailureLimits.ofNobody)
        #expect(rows.count { !$0.account.isEmpty } == SyncFailureLimits.ofAccounts)
        #expect(written.log.contains("dropped=9"))
    }

    @Test func `failures whose reasons differ only in numbers share a row, and so do conflicts of a session`() async throws {
        let written = Written()
        let writer = written.writer { try await Task.sleep(for: .seconds(600)) }
        for (time, reason) in [(1, "5 bytes"), (3, "7 bytes"), (2, "6 bytes")] {
            var failure = Self.failure("r", at: Int64(time))
            failure.reason = reason
            writer.record([failure])
        }
        for zone in ["one", "two"] {
            writer.record([
                SyncFailure(
                    at: 9, operation: "records.modify", container: Self.container, environment: "development", account: "anna",
                    scope: .private, zone: zone, code: SyncFailure.conflict, reason: "version \(zone)")
            ])
        }
        await writer.finish()
        let rows = try #require(written.all.first).sorted { $0.at < $1.at }
        #expect(rows.map(\.count) == [3, 2])
        #expect(rows.map(\.reason) == ["7 bytes", "version two"] && rows.last?.zone == "")
    }

    @Test func `a failure of another device, or with another reason, has a row of its own`() async throws {
        let written = Written()
        let writer = written.writer { try await Task.sleep(for: .seconds(600)) }
        for (time, (sender, reason)) in [
            ("phone", "the e-mail address or the password is wrong"), ("phone", "the code of the second factor is wrong"),
            ("laptop", "the code of the second factor is wrong"), ("phone", "the e-mail address or the password is wrong"),
        ].enumerated() {
            var failure = Self.failure("", at: Int64(time))
            (failure.sender, failure.reason) = (sender, reason)
            writer.record([failure])
        }
        await writer.finish()
        let rows = try #require(written.all.first).sorted { $0.at < $1.at }
        #expect(rows.map(\.sender) == ["phone", "laptop", "phone"] && rows.map(\.count) == [1, 1, 2])
        #expect(Set(rows.map(\.id)).count == 3)
    }

    @Test func `a server ends without waiting for a storage that does not answer`() async throws {
        let written = Written()
        written.time.withLock { $0 = .seconds(20) }
        let writer = written.writer {}
        writer.record([Self.failure("late")])
        let began = ContinuousClock.now
        await writer.finish(within: .milliseconds(50))
        #expect(ContinuousClock.now - began < .seconds(15))
        #expect(written.all.isEmpty)
        #expect(written.log.contains("has not answered in time") && written.log.contains("count=1"))
    }

    @Test func `a sweep removes the failures of deleted accounts`() async throws {
        let scratch = try Scratch()
        let credentials = try CredentialStore(at: scratch.url)
        let now = Timestamp.now()
        try await credentials.record(["anna", "ben", ""].map { Self.failure("r", of: $0, at: now) })
        for account in ["anna", "ben"] {
            var signIn = Self.failure("", of: "", at: now)
            signIn.sender = SyncFailure.sender(ofSignInTo: account)
            try await credentials.record([signIn])
        }
        try await credentials.sweepSyncFailures { account in account == "ben" }
        #expect(try await credentials.syncFailureValues(of: .account) == ["ben", ""])
        #expect(try await credentials.syncFailures(.init(account: "")).compactMap(\.triedAccount) == ["ben"])
    }

    @Test func `a failing write is logged, and later writes still work`() async throws {
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
                    code: "BAD_REQUEST", reason: "'Trip' has no field 'note'", record: "p1", recordType: "Trip", zone: "Z",
                    field: "note", fieldType: "string"),
                Reply.Failure(
                    code: "BAD_REQUEST", reason: String(repeating: "x", count: 5_000), record: "p2", recordType: "Trip", zone: "Z"
                ),
            ]
            return reply
        },
        TidemarkServer.Operation("changes.database", .post, "\(prefix)/changes/database") { _ in .json(Array("{}".utf8)) },
    ]

    @Test func `a server that ends writes its failures, logs each part, and names the account of an ended session`() async throws
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
            // The session is not in these containers: a client with its token could name any container.
            for container in ["iCloud.org.example.other", "nowhere"] {
                let path = changes.replacing(Self.container, with: container)
                #expect(try await server.send(.POST, path, headers: bearer).status == 401)
            }
            // A device that signs in again ends the session that has ended.
            #expect(try await server.send(.POST, "\(signIn)/end", headers: bearer).status == 401)
            var altered = Array(token)
            altered[20] = altered[20] == "A" ? "B" : "A"
            #expect(try await server.send(.POST, changes, headers: ["Authorization": "Bearer \(String(altered))"]).status == 401)
            await server.shutDown()
            var found: [SyncFailure] = []
            for _ in 0..<1_000 where found.count < 6 {
                found = try await CredentialStore(at: server.directory).syncFailures(.init())
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(found.count == 6, "\(found)")
            let records = found.filter { $0.operation == "records.modify" }.sorted { $0.record < $1.record }
            #expect(records.map { "\($0.recordType):\($0.record) \($0.zone) \($0.count)" } == ["Trip:p1 Z 2", "Trip:p2 Z 2"])
            // The field, and the session of the device.
            #expect(records.map { "\($0.field) \($0.fieldType)" } == ["note string", " "])
            #expect(records.allSatisfy { $0.sender.count == 32 } && Set(records.map(\.sender)).count == 1)
            #expect(records.allSatisfy { $0.account == anna.id && $0.scope == .private && $0.environment == "development" })
            let sessions = found.filter { $0.operation == "changes.database" && !$0.account.isEmpty }
            #expect(sessions.map(\.sender) == [records.first?.sender])
            #expect(sessions.map(\.account) == [anna.id] && sessions.first?.reason == SessionFailure.revoked.reason)
            // An altered token names no account, whatever session it contains; nor does a session of another container.
            #expect(found.count { $0.operation == "changes.database" && $0.account.isEmpty } == 3)
            let log = server.logged
            let parts = log.split(separator: "\n").filter { $0.contains("message=refused") }
            #expect(
                parts.contains {
                    $0.contains("level=debug") && $0.contains("code=BAD_REQUEST") && $0.contains("type=Trip")
                        && $0.contains("has no field 'note'")
                }, "\(log)")
            #expect(log.contains("refused=\"BAD_REQUEST 2\""), "\(log)")
            let many = String(repeating: "x", count: 1_000)
            #expect(log.contains(many) && !log.contains(many + "x"))
        }
    }

    @Test func `a refused sign-in names the account and the device, and not the text that was typed`() async throws {
        try await StubbedServer.with(operations: Self.operations) { server in
            let anna = try #require(try await EmbeddedCloud(at: server.directory).account("anna@example.org"))
            let path = "/tidemark/1/\(Self.container)/development/session"
            for email in ["anna@example.org", "swordfish", "nobody@example.org"] {
                let body = Array(#"{"email":"\#(email)","password":"wrong horse","device":"pocket"}"#.utf8)
                #expect(try await server.send(.POST, path, body: body).status == 401)
            }
            await server.shutDown()
            var found: [SyncFailure] = []
            for _ in 0..<1_000 where found.reduce(0, { $0 + $1.count }) < 3 {
                found = try await CredentialStore(at: server.directory).syncFailures(.init())
                try await Task.sleep(for: .milliseconds(20))
            }
            #expect(found.count == 2 && found.allSatisfy { $0.account.isEmpty }, "\(found)")
            #expect(found.compactMap(\.triedAccount) == [anna.id])
            let unknown = try #require(found.first { $0.triedAccount == nil })
            #expect(unknown.reason == "no such account" && unknown.count == 2 && unknown.sender.isEmpty)
            #expect(found.allSatisfy { $0.device == "pocket" })
            for typed in ["swordfish", "nobody", "horse"] { #expect(!"\(found)".contains(typed)) }
        }
    }
}
