import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: values that a device could not import are fetched as soon as it has a field for them. Method: two devices and an
/// embedded cloud; one device has a field of another type, or drops a field and makes it again.
@Suite(.timeLimit(.minutes(30))) struct LeftValuesTests {
    private static let type = "Destination"

    /// Two devices: `rating` is int64 on the first and in the cloud, and a string on the second, whose own record is refused.
    private func clash(_ scratch: Scratch, _ text: String) async throws -> (a: Device, b: Device) {
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        for number in 1...3 {
            try await a.set("c\(number)", ["caption": .string("City"), "rating": .int64(Int64(number))])
        }
        try await b.set("x", ["rating": .string(text)])
        #expect(try await a.engine.sync().isComplete)
        let report = try await b.engine.sync()
        #expect(report.deferred == 3 && report.outbox.pending == 1)
        return (a, b)
    }

    private func ratings(_ device: Device) throws -> [String: FieldValue] {
        try device.records().compactMapValues { $0["rating"] }
    }

    @Test func `after a rename the values of the cloud's type are fetched with the next synchronisation`() async throws {
        let scratch = try Scratch()
        let (a, b) = try await clash(scratch, "good")
        #expect(try !SyncStatus(of: b.container).isInSync)
        let missing = try b.reader().deferredRecords().flatMap { try $0.missingFields(in: b.reader().types()) }
        #expect(missing.map { "\($0.field) \($0.here ?? "") \($0.cloud)" } == Array(repeating: "rating string int64", count: 3))
        _ = try await b.store.changeSchema([.renameField("rating", of: Self.type, to: "ratingText")], author: "test")
        let report = try await b.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        #expect(try ratings(b) == ["c1": .int64(1), "c2": .int64(2), "c3": .int64(3)])
        #expect(try SyncStatus(of: b.container).isInSync)
        // The device's values are sent, and neither device changes the other's values.
        try await b.set("c1", ["caption": .string("of B")])
        #expect(try await b.engine.sync().isComplete)
        _ = try await a.engine.sync()
        #expect(try a.records() == b.records())
        #expect(try a.records()["x"] == ["ratingText": .string("good")])
        #expect(try a.records()["c1"] == ["caption": .string("of B"), "rating": .int64(1)])
    }

    @Test func `a field gets the cloud's type, and the values of both are on both devices`() async throws {
        let scratch = try Scratch()
        let (a, b) = try await clash(scratch, "good")
        let retype = SchemaChange.retypeField("rating", of: Self.type, to: .init(name: "rating", type: .int64))
        let cloudTypes = try b.reader().cloudFieldTypes()
        #expect(cloudTypes == [Self.type: ["rating": .int64]])
        // A value that does not convert is named, and nothing is changed.
        let plan = try await b.store.changeSchema([retype], cloudTypes: cloudTypes, author: "test")
        #expect(plan.problems.map(\.record.name) == ["x"])
        #expect(try b.records()["x"] == ["rating": .string("good")])
        try await b.set("x", ["rating": .string("4")])
        // Without the cloud's types the change is refused.
        await #expect(throws: StoreError.self) { try await b.store.changeSchema([retype], author: "test") }
        let other = SchemaChange.retypeField("rating", of: Self.type, to: .init(name: "rating", type: .double))
        let error = await #expect(throws: StoreError.self) {
            try await b.store.changeSchema([other], cloudTypes: cloudTypes, author: "test")
        }
        #expect(error?.message.contains("'rating' is int64 there: give it that type") == true)
        let done = try await b.store.changeSchema([retype], cloudTypes: cloudTypes, author: "test")
        #expect(done.problemCount == 0 && !done.isDone)
        let report = try await b.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        _ = try await a.engine.sync()
        #expect(try ratings(b) == ["c1": .int64(1), "c2": .int64(2), "c3": .int64(3), "x": .int64(4)])
        #expect(try a.records() == b.records())
    }

    @Test func `a field gets the cloud's type, and later values of other devices stay`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        for name in ["c1", "c2", "c3"] { try await a.set(name, ["caption": .string("City"), "rating": .int64(1)]) }
        #expect(try await a.engine.sync().isComplete)
        // The field is removed from the schema, and another device writes strings.
        _ = try await cloud.cloud.removeFromSchema(type: Self.type, field: "rating", of: TestCloud.container, isForced: true)
        let zone = CloudZoneID(SyncConfiguration().zoneName)
        let now = Int64(Date().timeIntervalSince1970 * 1_000_000)
        let times: [String: Int64] = ["c1": now, "c2": now + 60_000_000, "c3": now - 60_000_000]
        for case .saved(var record) in try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).changes {
            guard let time = times[record.id.recordName] else { continue }
            record.fields["rating"] = .string("seven")
            record.fields[CloudRecord.editedField] = .string(
                EditTimes(otherwise: EditTime(microseconds: time, device: "b")).description)
            let outcome = try await database.modify(
                ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.update, record)]))
            guard case .saved = outcome[0] else {
                Issue.record("\(record.id.recordName) was not saved: \(outcome[0])")
                continue
            }
        }
        // Edits that the cloud refuses: one is older than the cloud's value, one is later.
        try await a.set("c2", ["rating": .int64(20)])
        try await a.set("c3", ["rating": .int64(30)])
        #expect(try await a.engine.sync().deferred == 3)

        let retype = SchemaChange.retypeField("rating", of: Self.type, to: .init(name: "rating", type: .string))
        let plan = try await a.store.changeSchema(
            [retype], cloudTypes: a.reader().cloudFieldTypes(), cloudValues: a.reader().cloudFieldValues(), author: "test")
        #expect(plan.problemCount == 0 && !plan.isDone)
        let report = try await a.engine.sync()
        #expect(report.isComplete && report.deferred == 0)
        let expected: [String: FieldValue] = ["c1": .string("seven"), "c2": .string("seven"), "c3": .string("30")]
        #expect(try ratings(a) == expected)
        let b = try Device(scratch["b.tidemark"], database: database)
        #expect(try await b.engine.sync().isComplete)
        #expect(try ratings(b) == expected)
    }

    @Test func `a dropped field that is made again gets the cloud's values, and unsent edits stay`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(4)])
        try await a.set("bodø", ["caption": .string("Bodø"), "rating": .int64(3)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        _ = try await b.store.changeSchema([.dropField("rating", of: Self.type)], author: "test")
        try await a.set("senja", ["rating": .int64(5)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        #expect(try ratings(b).isEmpty)
        #expect(try SyncStatus(of: b.container).isInSync)

        try await b.set("x", ["rating": .int64(9)])
        try await b.set("senja", ["caption": .string("Senja in May")])
        let status = try SyncStatus(of: b.container)
        #expect(status.obstacles.contains(.changesToFetch(.private)))
        #expect(try await b.engine.sync().isComplete)
        #expect(try ratings(b) == ["senja": .int64(5), "bodø": .int64(3), "x": .int64(9)])
        #expect(try SyncStatus(of: b.container).isInSync)
        _ = try await a.engine.sync()
        #expect(try a.records() == b.records())
        #expect(try a.records()["senja"] == ["caption": .string("Senja in May"), "rating": .int64(5)])
        // The values are fetched once.
        let before = try b.reader().historyToken()
        _ = try await b.engine.sync()
        #expect(try b.reader().changes(since: before).transactions.isEmpty)
    }

    @Test func `a passed-over field says how many values stay in the cloud, if they were counted`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        for name in ["senja", "bodø"] { try await a.set(name, ["caption": .string("City"), "rating": .int64(4)]) }
        try await a.set("oslo", ["caption": .string("Oslo")])
        _ = try await a.engine.sync()
        // The cloud gets another value of the first record, and none of the second.
        try await a.set("senja", ["rating": .int64(5)])
        try await a.set("odda", ["rating": .int64(3)])
        func counts() throws -> [Int?] { try a.reader().ignoredFields().map { $0.records } }
        #expect(try counts().isEmpty)
        _ = try await a.store.changeSchema([.dropField("rating", of: Self.type)], author: "test")
        #expect(try counts() == [1])
        // As an earlier version has written it.
        try DamagedRows.run(a.container.store(.private)) { db in
            try db.execute(
                sql: "UPDATE tide_meta SET value = json_remove(value, '$[0].records') WHERE key = 'former_fields'")
        }
        #expect(try counts() == [nil])
    }

    @Test func `fetching everything again brings the values that an earlier version has passed over`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(4)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        _ = try await b.store.changeSchema([.dropField("rating", of: Self.type)], author: "test")
        try await b.set("x", ["rating": .int64(9)])
        // As if everything had been fetched for the field before the records were compared.
        try DamagedRows.run(b.container.store(.private)) { db in
            try db.execute(
                sql: """
                    INSERT OR REPLACE INTO tide_sync (key, value)
                    SELECT 'remade_fields', group_concat(
                        json_extract(j.value, '$.type') || '/' || json_extract(j.value, '$.name') || '/' ||
                        json_extract(j.value, '$.until'), ' ')
                    FROM tide_meta m, json_each(m.value) j WHERE m.key = 'former_fields'
                    """)
        }
        #expect(try await b.engine.sync().isComplete)
        #expect(try ratings(b) == ["x": .int64(9)])
        try await b.engine.refetch()
        #expect(try await b.engine.sync().imported == 1)
        #expect(try ratings(b) == ["senja": .int64(4), "x": .int64(9)])
    }
}
