import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: a write that reads together with its locks reads what it would have read after them. Method: another server writes while
/// the first waits for the lock, and a look at the statements.
@Suite(
    "Reads with the locks of a write", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"),
    .timeLimit(.minutes(30)))
struct AheadTests {
    private static let place = StoredZone.Place(scope: .private, owner: "_anna", name: "Zone")
    private static let reads = ExpectedReads(place: place, names: ["a", "b", "a"], user: "_anna", token: "token")

    private static func record(_ name: String, in zone: StoredZone.ID, at change: Int64) -> StoredCloudRecord {
        let stamp = CloudRecord.Stamp(time: change, userRecordName: zone.owner)
        return StoredCloudRecord(
            zone: zone, name: name, type: "Note", fields: Data(name.utf8), parent: nil, changed: change, created: stamp,
            modified: stamp, isDeleted: false, dependsOn: [], assets: [], indexed: [:])
    }

    /// What a request reads before it writes.
    private struct Seen: Equatable, Sendable {
        var zone: Int64?
        var changed: [String: Int64] = [:]
        var used, reserved: Int64
        var answer: Data?
        var removals: [String] = []

        init(_ rows: any CloudTransaction) throws(CloudError) {
            let zone = try rows.zone(place)
            self.zone = zone?.changed
            answer = try rows.answer(to: "token", of: "_anna")
            if let zone {
                changed = try rows.records(["a", "b", "a"], in: zone.id).mapValues(\.changed)
                removals = try rows.removals(in: zone.id).map(\.target)
            }
            _ = try rows.schema()
            used = try rows.used(by: "_anna")
            reserved = try rows.reserved(by: "_anna").bytes
        }
    }

    private static func change(_ number: Int64, _ rows: any CloudTransaction) throws(CloudError) {
        let zone = try rows.save(StoredZone(place: place, made: 1, changed: number)).id
        try rows.save([record("a", in: zone, at: number)])
        try rows.addUsed(number, by: "_anna")
        try rows.keep(Data("\(number)".utf8), to: "token", of: "_anna", at: number)
        try rows.add(StoredRemoval(zone: zone, kind: .dependents, target: "r\(number)", change: number, user: "_anna"))
        try rows.reserve(number, for: StoredUpload(payer: "_anna", owner: "_anna", digest: "d", user: "_anna"), at: number)
        try rows.setLastChange(number, of: "_anna")
    }

    @Test("Reads that go with a lock see what another server commits while the write waits for the lock")
    func seesOthers() async throws {
        let records = try await RecordsFixture()
        let (here, there) = (try await records.storage(), try await records.storage(on: records.fixture.other()))
        for number in 1...40 as ClosedRange<Int64> {
            // The first of these has neither owner nor zone, and the number of the zone is known from the second on.
            let (held, done) = (Signal(), Signal())
            let holder = Task {
                try await there.write(owners: ["_anna"]) { rows throws(CloudError) in
                    try Self.change(number, rows)
                    held.send()
                    done.block()
                }
            }
            await held.wait()
            let waiter = Task {
                try await here.write(owners: ["_anna"], expecting: Self.reads) { rows throws(CloudError) in
                    let seen = try Seen(rows)
                    // A read after a write sees that write.
                    try rows.addUsed(1_000, by: "_anna")
                    let used = try rows.used(by: "_anna")
                    try rows.addUsed(-1_000, by: "_anna")
                    return (seen, used)
                }
            }
            try await Task.sleep(for: .milliseconds(number % 4 == 0 ? 30 : 1))
            done.send()
            try await holder.value
            let (seen, used) = try await waiter.value
            let stored = try await here.read { rows throws(CloudError) in try Seen(rows) }
            #expect(seen == stored)
            #expect(seen.zone == number && seen.changed == ["a": number] && seen.answer == Data("\(number)".utf8))
            #expect(used == seen.used + 1_000)
        }
    }

    @Test("A zone that has another number by now is read by that number")
    func readsByNumber() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        func seen() async throws -> Seen {
            try await storage.write(owners: ["_anna"], expecting: Self.reads) { rows throws(CloudError) in try Seen(rows) }
        }
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in try Self.change(1, rows) }
        #expect(try await seen().changed == ["a": 1])
        #expect(try await seen().changed == ["a": 1])
        // As after a restoration of the rows.
        let zone = try await storage.read { rows throws(CloudError) in try rows.zone(Self.place)! }
        var other = zone
        other.number = zone.number + 100
        try await records.fixture.sql(
            """
            UPDATE tidemark_records SET zone = zone + 100; UPDATE tidemark_removals SET zone = zone + 100;
            UPDATE tidemark_zones SET number = number + 100, digest = '\\x\(Hexadecimal.text(other.rowDigest))'
            """)
        try await records.fixture.sql("UPDATE tidemark_records SET damaged = changed")
        let found = try await seen()
        #expect(found.zone == 1 && found.changed == ["a": 1] && found.removals == ["r1"])
    }

    @Test("A write whose reads were expected waits for no answer between its locks and its writes")
    func waitsForNone() async throws {
        let storage = try await RecordsFixture().storage()
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in try Self.change(1, rows) }
        let trips = Shared(0)
        func write(_ number: Int64) async throws {
            try await storage.write(owners: ["_anna"], expecting: Self.reads) { rows throws(CloudError) in
                let transaction = (rows as? PostgresCloudTransaction)?.db
                let before = transaction?.roundTrips ?? 0
                _ = try Seen(rows)
                let count = (transaction?.roundTrips ?? 0) - before
                trips.change { $0 = count }
                try rows.setLastChange(number, of: "_anna")
            }
        }
        try await write(2)
        try await write(3)
        #expect(trips.value == 0)
    }

    @Test("A batch of 200 saves takes no more statements than one of two")
    func takesFewStatements() async throws {
        let seen = Shared(0)
        let records = try await RecordsFixture {
            // Without prepared statements each statement is seen, and not only its preparation.
            $0.preparesStatements = false
            $0.observesStatement = { _ in seen.change { $0 += 1 } }
        }
        let subject = try await EmbeddedCloudSubject(postgres: records, name: "batches")
        let database = try await subject.database(.private, account: "anna@example.org")
        let zone = CloudZoneID("Journal")
        try await database.modifyZones(saving: [zone], deleting: [])
        func statements(saving count: Int, _ name: String) async throws -> Int {
            let operations = (0..<count).map {
                RecordOperation(
                    .create, CloudRecord(CloudRecordID("\(name) \($0)", in: zone), type: "Note", fields: ["text": .string(name)]))
            }
            let before = seen.value
            let outcomes = try await database.modify(ModifyRecordsRequest(zone: zone, operations: operations, isAtomic: true))
            #expect(outcomes.count == count)
            return seen.value - before
        }
        // The first save makes the type. After the fourth write, and the 32nd, the server analyzes the table.
        for number in 0..<6 { _ = try await statements(saving: 1, "first \(number)") }
        let few = try await statements(saving: 2, "few")
        let many = try await statements(saving: 200, "many")
        #expect(many == few && many <= 24, "\(few) statements of 2 saves, \(many) of 200")
    }
}
