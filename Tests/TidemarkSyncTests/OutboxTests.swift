import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a change leaves the outbox when the cloud has accepted it, and later changes stay. Method: stores that exchange with a
/// cloud in memory, step by step, and their tables.
@Suite(.timeLimit(.minutes(30))) struct OutboxTests {
    /// Checks that nothing is pending, and that each row has the cloud's tag and times.
    private func expectNoted(_ device: ZonedDevice) throws {
        let (waiting, rows) = try device.reader().database.read { db in
            (
                try Int.fetchOne(db, sql: "SELECT count(*) FROM tide_outbox"),
                try Row.fetchAll(db, sql: "SELECT _tag, _edited FROM Destination ORDER BY _key")
            )
        }
        #expect(waiting == 0)
        let there = try #require(device.cloud.zones[.default]).sorted { $0.key < $1.key }.map(\.value)
        let noted = rows.map { row -> [String?] in [row["_tag"] as String?, row["_edited"] as String?] }
        let wanted = there.map { record -> [String?] in [record.tag, record.edited.description] }
        #expect(noted == wanted)
    }

    @Test func `an accepted change leaves the outbox, and its row gets the cloud's tag and times`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        for name in ["one", "three", "two"] { try await device.set(name, ["caption": .string(name)]) }
        #expect(try await device.send(.default) == ["one", "three", "two"])
        try expectNoted(device)
        for name in ["three", "two"] { try await device.set(name, ["rating": .int64(2)]) }
        #expect(try await device.send(.default) == ["three", "two"])
        try expectNoted(device)
    }

    @Test func `if a record is edited while it is sent, only the edit is sent again`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        try await device.set("senja", ["caption": .string("Senja"), "rating": .int64(1)])
        let batch = try await device.next(.default)
        let request = try await device.begin(batch, .default)
        try await device.set("senja", ["details": .string("an island")])
        try await device.applyReply(to: request, of: batch, .default)
        let next = try await device.next(.default)
        #expect(next.items.map(\.values) == [["details": .string("an island")]])
        #expect(next.items.map(\.tag) == ["t1"])
    }

    @Test func `a record that is deleted while it is sent is deleted in the cloud, too`() async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch.container)
        try await device.set("senja", ["caption": .string("Senja")])
        let batch = try await device.next(.default)
        let request = try await device.begin(batch, .default)
        try await device.delete("senja")
        // There is nothing to delete as far as is known, and the deletion is not looked at again.
        #expect(try await device.next(.default).isEmpty)
        try await device.applyReply(to: request, of: batch, .default)
        #expect(device.cloud.zones[.default]?.keys.sorted() == ["senja"])
        #expect(try await device.send(.default) == ["senja"])
        #expect(device.cloud.zones[.default]?.isEmpty == true)
        #expect(try device.reader().outbox() == OutboxSummary())
    }

    @Test func `a conflict that waits for a person ends once the cloud has taken the record's next edit`() async throws {
        let scratch = try Scratch()
        let cloud = ZoneCloud()
        let a = try ZonedDevice(scratch["a.tidemark"], cloud)
        let b = try ZonedDevice(scratch["b.tidemark"], cloud, policy: .error)
        try await a.set("senja", ["caption": .string("of A")])
        try await a.send(.default)
        try await b.set("senja", ["caption": .string("of B")])
        try await b.fetch(.default)
        #expect(try b.reader().deferredRecords().map(\.reason) == [.conflict])
        // Another device deletes the record, so the cloud takes it from B, which has not heard of the deletion.
        try await a.delete("senja")
        try await a.send(.default)
        try await b.set("senja", ["caption": .string("of B again")])
        let batch = try await b.next(.default)
        let request = try await b.begin(batch, .default)
        try await b.set("senja", ["caption": .string("of B, once more")])
        try await b.applyReply(to: request, of: batch, .default)
        // To resolve the conflict would bring the deleted version back.
        #expect(try b.reader().deferredRecords().isEmpty)
        #expect(try b.reader().syncIssues(isRefused: true) == [])
        #expect(try await b.send(.default) == ["senja"])
        #expect(cloud.zones[.default]?["senja"]?.values["caption"] == .string("of B, once more"))
    }

    @Test func `each record is sent with the time of its own edit`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        var times: [String: Int64] = [:]
        for name in ["one", "two", "three"] {
            try await a.set(name, ["caption": .string(name)])
            times[name] = try #require(try a.reader().transactions().first).time
        }
        #expect(try await a.engine.sync().isComplete)
        let zone = CloudZoneID(SyncConfiguration().zoneName)
        var found: [String: Int64] = [:]
        for case .saved(let record) in try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).changes {
            guard case .string(let text)? = record.fields[CloudRecord.editedField] else { continue }
            found[record.id.recordName] = EditTimes(text)["caption"]?.microseconds
        }
        #expect(found == times)
    }
}
