import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkPostgres
import TidemarkTesting

@testable import TidemarkCloudEngine

/// Goal: two servers that use the same rows are one cloud. Method: two storages with connections of their own over one database, and writers
/// on both at once.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresWritersTests {
    private let records: RecordsFixture
    private let one, other: PostgresCloudStorage

    init() async throws {
        records = try await RecordsFixture()
        one = try await records.storage()
        other = try await records.storage(on: try records.fixture.other { $0.connections = 8 })
    }

    private static func record(
        _ name: String, in zone: StoredZone.ID, at change: Int64, fields: Data = Data()
    ) -> StoredCloudRecord {
        StoredCloudRecord(
            zone: zone, name: name, type: "Note", fields: fields, parent: nil, changed: change,
            created: .init(time: 1, userRecordName: "_anna"), modified: .init(time: 1, userRecordName: "_anna"),
            isDeleted: false, dependsOn: [], assets: [], indexed: [1: [.text(name)]])
    }

    private func makeZone(of owner: String) async throws -> StoredZone.ID {
        try await one.write(owners: [owner]) { rows throws(CloudError) in
            let place = StoredZone.Place(scope: owner.isEmpty ? .public : .private, owner: owner, name: "Zone")
            return try rows.save(StoredZone(place: place, made: 0, changed: 0)).id
        }
    }

    /// Writers of an owner read the counter, wait, and write it.
    @Test func `writers of one owner on two servers lose no number and give none out twice`() async throws {
        let zone = try await makeZone(of: "_anna")
        let given = try await withThrowingTaskGroup(of: [Int64].self) { group in
            for writer in 0..<6 {
                let storage = writer % 2 == 0 ? one : other
                group.addTask {
                    var given: [Int64] = []
                    for turn in 0..<20 {
                        given.append(
                            try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
                                let change = try rows.lastChange(of: "_anna") + 1
                                try rows.save([Self.record("\(writer) \(turn)", in: zone, at: change)])
                                try rows.setLastChange(change, of: "_anna")
                                return change
                            })
                    }
                    return given
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(given.sorted() == Array(1...120))
        let found = try await other.read { rows throws(CloudError) in
            (try rows.records(in: zone, after: 0, limit: 1000), try rows.lastChange(of: "_anna"))
        }
        #expect(found.0.map(\.changed) == Array(1...120))
        #expect(found.1 == 120)
    }

    /// Writes with the lock of an owner until `mayEnd` is set.
    private func hold(_ owner: String, in zone: StoredZone.ID, isHeld: Shared<Bool>, mayEnd: Shared<Bool>) async throws {
        try await one.write(owners: [owner]) { rows throws(CloudError) in
            try rows.save([Self.record("held", in: zone, at: 1)])
            try rows.setLastChange(1, of: owner)
            // The statements before this one are done when it is answered.
            _ = try rows.lastChange(of: owner)
            isHeld.change { $0 = true }
            for _ in 0..<20_000 where !mayEnd.value { usleep(1000) }
        }
    }

    @Test func `a write of one owner ends while another owner's goes on, and a second one of that owner waits for it`()
        async throws
    {
        let (anna, ben) = (try await makeZone(of: "_anna"), try await makeZone(of: "_ben"))
        let (isHeld, mayEnd, hasWaited) = (Shared(false), Shared(false), Shared(false))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await hold("_ben", in: ben, isHeld: isHeld, mayEnd: mayEnd) }
            #expect(try await eventually { isHeld.value })
            group.addTask {
                try await other.write(owners: ["_ben"]) { rows throws(CloudError) in
                    try rows.save([Self.record("second", in: ben, at: 2)])
                    try rows.setLastChange(2, of: "_ben")
                    _ = try rows.lastChange(of: "_ben")
                    hasWaited.change { $0 = true }
                }
            }
            var change: Int64 = 0
            for storage in [one, other, one, other] {
                change += 1
                try await storage.write(owners: ["_anna"]) { [change] rows throws(CloudError) in
                    try rows.save([Self.record("beside \(change)", in: anna, at: change)])
                    try rows.setLastChange(change, of: "_anna")
                }
            }
            #expect(!mayEnd.value && !hasWaited.value)
            mayEnd.change { $0 = true }
            try await group.waitForAll()
        }
        #expect(hasWaited.value)
        #expect(try await one.read { rows throws(CloudError) in try rows.lastChange(of: "_ben") } == 2)
    }

    @Test func `writers of the same two owners, named in either order, wait for each other and never end in a deadlock`()
        async throws
    {
        _ = (try await makeZone(of: "_anna"), try await makeZone(of: "_ben"))
        // A transaction that PostgreSQL ends to break a deadlock does not run again here.
        let impatient = try records.fixture.other {
            $0.connections = 8
            $0.attempts = 1
        }
        let another = try await records.storage(on: impatient)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
                let owners: WrittenOwners = writer % 3 == 0 ? ["_anna", "_ben"] : ["_ben", "_anna"]
                group.addTask {
                    for _ in 0..<20 {
                        try await another.write(owners: owners) { rows throws(CloudError) in
                            for owner in ["_anna", "_ben"] {
                                try rows.setLastChange(try rows.lastChange(of: owner) + 1, of: owner)
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        for owner in ["_anna", "_ben"] {
            #expect(try await one.read { rows throws(CloudError) in try rows.lastChange(of: owner) } == 120)
        }
        await impatient.close()
    }

    /// In the public database nothing is locked before it is read: each writer adds to what a record holds.
    @Test func `writers of the public database on two servers lose no change of a record`() async throws {
        let zone = try await makeZone(of: "")
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
                let storage = writer % 2 == 0 ? one : other
                group.addTask {
                    for turn in 0..<15 {
                        let shared = "shared \(turn % 3)"
                        // A client tries again when the zone is busy. The transaction has left nothing.
                        var isSaved = false
                        while !isSaved {
                            do {
                                try Task.checkCancellation()
                                try await storage.write(owners: ["", "_user\(writer)"]) { rows throws(CloudError) in
                                    let change = try rows.lastChange(of: "") + .random(in: 1...3)
                                    let names = [shared, "own \(writer) \(turn)"]
                                    let known = try rows.records(names, in: zone)
                                    let fields = (known[shared]?.fields ?? Data()) + [UInt8(writer)]
                                    try rows.save([
                                        Self.record(shared, in: zone, at: change, fields: fields),
                                        Self.record(names[1], in: zone, at: change + 10_000_000),
                                    ])
                                    try rows.addUsed(1, by: "_user\(writer)")
                                }
                                isSaved = true
                            } catch let error as CloudError where error.code == .zoneBusy {
                                try await Task.sleep(for: .milliseconds(10))
                            }
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let found = try await one.read { rows throws(CloudError) in
            (
                try rows.records(["shared 0", "shared 1", "shared 2"], in: zone),
                try rows.records(in: zone, after: 0, limit: 1000),
                try rows.allUsed()
            )
        }
        for writer in 0..<6 {
            let count = found.0.values.reduce(0) { $0 + $1.fields.filter { $0 == UInt8(writer) }.count }
            #expect(count == 15, "writer \(writer)")
            #expect(found.2["_user\(writer)"] == 15)
        }
        #expect(found.1.count == 93)
        #expect(Set(found.1.map(\.changed)).count == 93)
    }

    @Test func `a writer of all owners waits for the others, and they for it`() async throws {
        let zone = try await makeZone(of: "_anna")
        try await one.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save([Self.record("a", in: zone, at: 1)])
            try rows.setLastChange(1, of: "_anna")
        }
        let (began, goesOn) = (Signal(), Signal())
        async let writer: Void = other.write(owners: ["_anna"]) { rows throws(CloudError) in
            // The record is indexed by the schema from before.
            try rows.save([Self.record("b", in: zone, at: 2)])
            try rows.setLastChange(2, of: "_anna")
            _ = try rows.lastChange(of: "_anna")
            began.send()
            goesOn.block()
        }
        await began.wait()
        async let indexed: Void = one.write(owners: .all) { rows throws(CloudError) in
            try rows.reindex("Note") { _, _ throws(CloudError) in [2: [.integer(7)]] }
        }
        try await Task.sleep(for: .milliseconds(200))
        goesOn.send()
        try await writer
        try await indexed
        let query = IndexQuery(type: "Note", conditions: [.compare(.index(2), .equal, .real(7))], order: [])
        let found = try await one.read { rows throws(CloudError) in
            try rows.find(query, in: zone, limit: 10, within: QueryBudget(steps: .max, time: .seconds(10)))
        }
        #expect(found.rows.map(\.record.name) == ["a", "b"])
    }

    @Test func `of two servers that change the schema at once, one runs again`() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<6 {
                let storage = writer % 2 == 0 ? one : other
                group.addTask {
                    for turn in 0..<5 {
                        try await storage.write(owners: ["_user\(writer)"]) { rows throws(CloudError) in
                            var schema = try rows.schema()
                            schema.types["Type\(writer)x\(turn)"] = CloudSchema.RecordType()
                            try rows.save(schema)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let schemas = [
            try await one.read { rows throws(CloudError) in try rows.schema() },
            try await other.read { rows throws(CloudError) in try rows.schema() },
        ]
        #expect(schemas[0].types.count == 30)
        #expect(schemas[0] == schemas[1])
    }

    @Test func `a transaction that writes rows of an owner whom it has not declared is refused, and nothing is written`()
        async throws
    {
        func write(_ declared: WrittenOwners) async throws {
            try await one.write(owners: declared) { rows throws(CloudError) in
                try rows.addUsed(5, by: "anna")
                try rows.addUsed(7, by: "ben")
            }
        }
        await #expect(throws: CloudError(.internalError, "")) { try await write(["anna"]) }
        await #expect(throws: CloudError(.internalError, "")) { try await write([]) }
        #expect(try await one.read { rows throws(CloudError) in try rows.used(by: "anna") } == 0)
        try await write(["ben", "anna"])
        try await write(.all)
        #expect(try await one.read { rows throws(CloudError) in try rows.allUsed() } == ["anna": 10, "ben": 14])
    }

    @Test func `containers and environments of one database have nothing in common`() async throws {
        let apart = [
            try await records.storage(of: "other"), try await records.storage(of: "other", .production),
            try await records.storage(of: "iCloud.org.example.journal", .production),
        ]
        try await one.write(owners: ["anna"]) { rows throws(CloudError) in try rows.addUsed(5, by: "anna") }
        for storage in apart {
            #expect(storage.key != one.key)
            #expect(try await storage.read { rows throws(CloudError) in try rows.allUsed() }.isEmpty)
        }
        #expect(other.key == one.key)
        #expect(other.began == one.began)
        let now = Int64(Date().timeIntervalSince1970 * 1e6)
        #expect(abs(one.began - now) < 60_000_000)
    }
}
