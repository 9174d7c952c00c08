import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: an embedded cloud is one cloud, however many openings it has, and keeps what it has acknowledged. Method: several
/// openings of one directory; races for one record; the records after the last opening is closed.
@Suite(.timeLimit(.minutes(30))) struct EmbeddedCloudTests {
    private let scratch: Scratch
    private let zone = CloudZoneID("Journal")
    private let container = "iCloud.org.example.journal"

    init() throws { scratch = try Scratch() }

    /// A database of an opening of its own.
    private func database() async throws -> EmbeddedDatabase {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        return try cloud.database(.private, of: container, account: try await cloud.addAccount("Anna@example.org").id)
    }

    private func record(_ name: String, _ number: Int, tag: String? = nil) -> CloudRecord {
        CloudRecord(CloudRecordID(name, in: zone), type: "Counter", fields: ["n": .int64(Int64(number))], changeTag: tag)
    }

    @Test func `two openings of a cloud see each other's saves, and are notified`() async throws {
        let (one, other) = (try await database(), try await database())
        try await one.modifyZones(saving: [zone], deleting: [])
        var notifications = try await other.notifications().makeAsyncIterator()
        _ = try await one.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record("a", 1))]))
        #expect(await notifications.next() != nil)
        #expect(try await other.lookup(["a"], in: zone, desiredKeys: nil)[0].get().fields == ["n": .int64(1)])
    }

    @Test func `of clients that change a record at once each succeeds once, and no change is lost`() async throws {
        let databases = try await [database(), database(), database()]
        try await databases[0].modifyZones(saving: [zone], deleting: [])
        _ = try await databases[0].modify(
            ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record("sum", 0))]))
        let zone = zone
        try await withThrowingTaskGroup(of: Void.self) { group in
            for database in databases {
                group.addTask {
                    for _ in 0..<30 {
                        // As a device does: it merges the current version and tries again.
                        while true {
                            let there = try await database.lookup(["sum"], in: zone, desiredKeys: nil)[0].get()
                            guard case .int64(let number) = there.fields["n"] else {
                                throw CloudError(.internalError, "no number")
                            }
                            var next = there
                            next.fields["n"] = .int64(number + 1)
                            let outcome = try await database.modify(
                                ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.update, next)]))
                            if case .saved = outcome[0] { break }
                            #expect(outcome[0] == .failed(CloudError(.serverRecordChanged, "")))
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await database().lookup(["sum"], in: zone, desiredKeys: nil)[0].get().fields == ["n": .int64(90)])
    }

    @Test func `people are found by name after accounts were added and removed`() async throws {
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { 1 })
        func named(_ account: StoredAccount) async throws -> String {
            try #require(try await cloud.database(.shared, of: container, account: account.id).account().userRecordName)
        }
        let (anna, ben) = (try await cloud.addAccount("anna@example.org"), try await cloud.addAccount("ben@example.org"))
        let database = try cloud.database(.shared, of: container, account: anna.id)
        let benName = try await named(ben)
        #expect(try await database.users(matching: [.userRecordName(benName)]) == [])
        try await cloud.database(.private, of: container, account: ben.id).setDiscoverable(true)
        #expect(try await database.users(matching: [.userRecordName(benName)]).count == 1)
        try await cloud.removeIfUnused(ben)
        let cleo = try await cloud.addAccount("cleo@example.org")
        try await cloud.database(.private, of: container, account: cleo.id).setDiscoverable(true)
        let cleoName = try await named(cleo)
        #expect(try await database.users(matching: [.userRecordName(cleoName)]).map(\.userRecordName) == [cleoName])
        #expect(try await database.users(matching: [.userRecordName(benName)]) == [])
    }

    @Test func `in production nothing can be saved before a schema was deployed`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let account = try await cloud.addAccount("anna@example.org").id
        let database = try cloud.database(.private, of: container, environment: .production, account: account)
        try await database.modifyZones(saving: [zone], deleting: [])
        let outcomes = try await database.modify(
            ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record("a", 1))]))
        #expect(outcomes == [.failed(CloudError(.unknownItem, ""))])
    }

    @Test func `a request that is repeated within seven days gets the same answer, wherever the clock is set`() async throws {
        let time = LockedValue<Int64>(1_700_000_000_000_000)
        let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { time.withLock { $0 } })
        let database = try cloud.database(.private, of: container, account: try await cloud.addAccount("anna@example.org").id)
        try await database.modifyZones(saving: [zone], deleting: [])
        var request = ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record("a", 1))])
        request.clientToken = "request-1"
        let first = try await database.modify(request)
        // Other requests, after which old answers are removed.
        func later(days: Int64, _ names: [String]) async throws {
            time.withLock { $0 += days * 86_400_000_000 }
            for name in names {
                var other = ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record(name, 2))])
                other.clientToken = name
                _ = try await database.modify(other)
            }
        }
        try await later(days: 6, ["b"])
        #expect(try await database.modify(request) == first)
        try await later(days: 3_650, ["c"])
        #expect(try await database.modify(request) == first)
        try await later(days: -3_640, ["d"])
        #expect(try await database.modify(request) == first)
        try await later(days: 2, (0...AnswerAge.newest).map { "e\($0)" })
        #expect(try await database.modify(request) != first)
    }

    @Test func `a container's name can't lead out of the cloud's directory`() async throws {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        for name in ["", "..", "../x", "a/b", ".hidden", "a..b", "a b", "ä", String(repeating: "a", count: 256)] {
            #expect(throws: CloudError(.invalidArguments, ""), "\(name)") {
                try cloud.database(.private, of: name, account: nil)
            }
        }
        #expect(!FileManager.default.fileExists(atPath: scratch["cloud/containers"].path))
    }

    @Test func `a cloud of a newer format, and a file that is no cloud, are refused`() async throws {
        _ = try await database()
        let file = scratch["cloud/containers/\(container)/development/records.sqlite"]
        let newer = SQLiteCloudStorage.migrations.newest + 1
        for change in ["user_version = \(newer)", "user_version = 3", "application_id = 1"] {
            let queue = try DatabaseQueue(path: file.path)
            try queue.inDatabase { db in try db.execute(sql: "PRAGMA \(change)") }
            try queue.close()
            await #expect(throws: CloudError(.internalError, "")) { try await database() }
        }
    }

    @Test
    func `a change number names the writer that gave it out, and a transaction without numbers has no writer`() async throws {
        let file = scratch["records.sqlite"]
        let (one, other) = (try SQLiteCloudStorage(at: file), try SQLiteCloudStorage(at: file))
        func nonce(of change: Int64) async throws -> Data? {
            try await one.read { rows throws(CloudError) in try rows.writerNonce(of: change, in: "anna") }
        }
        // A step of a removal writes, but changes nothing that devices see.
        try await one.write(owners: ["anna"]) { rows throws(CloudError) in
            try rows.setLastChange(0, of: "anna")
        }
        #expect(try await nonce(of: 1) == nil)
        try await other.write(owners: ["anna"]) { rows throws(CloudError) in
            try rows.setLastChange(5, of: "anna")
        }
        try await one.write(owners: ["anna"]) { rows throws(CloudError) in
            try rows.setLastChange(5, of: "anna")
        }
        try await one.write(owners: ["anna"]) { rows throws(CloudError) in
            try rows.setLastChange(7, of: "anna")
        }
        let nonces = (try #require(try await nonce(of: 1)), try #require(try await nonce(of: 6)))
        #expect(nonces.0 != nonces.1 && nonces.0.count == 8)
        #expect(try await nonce(of: 5) == nonces.0)
        #expect(try await nonce(of: 7) == nonces.1)
        #expect(try await nonce(of: 0) == nil)
    }
}
