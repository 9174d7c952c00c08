import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a record that a store can't hold, or that a person is to decide on, is deferred and applied later. Method: devices whose
/// schemas differ, and the merge policy that asks.
@Suite(.timeLimit(.minutes(30))) struct DeferredRecordTests {
    @Test func `records that an earlier version has deferred in production are applied`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await cloud.cloud.deploySchemaOfEverything(cloud)
        let device = try Device(
            scratch["a.tidemark"], database: cloud.database(.production), containerEnvironment: .production)
        try await device.store.declare(
            [RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])], environment: .development)
        try await device.set("senja", ["caption": .string("Senja")])
        #expect(try await device.engine.sync().isComplete)
        // That version has tried the record with the current schema.
        let fields = FieldCoding.encode(["title": .string("Photo")])
        try DamagedRows.run(device.container.store(.private)) { db in
            try db.execute(
                sql: """
                    INSERT INTO tide_deferred (zone, name, type, tag, reason, fields) VALUES (1, 'p1', 'Photo', 't', 'schema', ?);
                    INSERT OR REPLACE INTO tide_sync (key, value)
                    SELECT 'kept_generation', value FROM tide_meta WHERE key = 'schema_generation'
                    """, arguments: [fields])
        }
        #expect(try await device.engine.sync().deferred == 0)
        #expect(try device.records("Photo") == ["p1": ["title": .string("Photo")]])
    }

    @Test func `a production store without types gets the cloud's at its first sync`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        try await cloud.cloud.deploySchemaOfEverything(cloud)
        let a = try Device(scratch["a.tidemark"], database: cloud.database(.production), containerEnvironment: .production)
        try await a.store.declare(
            [RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])], environment: .development)
        try await a.set("senja", ["caption": .string("Senja")])
        #expect(try await a.engine.sync().isComplete)
        let b = try Device(scratch["b.tidemark"], database: cloud.database(.production), containerEnvironment: .production)
        #expect(try await b.engine.sync().deferred == 0)
        #expect(try b.records() == a.records())
    }

    @Test func `a type that production does not have is refused with the reason, and the synchronisation ends`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database(.production), containerEnvironment: .production)
        try await a.store.declare(
            [RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])], environment: .development)
        try await a.set("senja", ["caption": .string("Senja")])
        let report = try await a.engine.sync()
        #expect(report.outbox.pending == 1)
        #expect(try a.reader().syncIssues(record: "senja").first?.reason?.contains("Destination") == true)
        try await cloud.cloud.deploySchemaOfEverything(cloud)
        try await a.set("senja", ["caption": .string("again")])
        #expect(try await a.engine.sync().isComplete)
    }

    @Test func `a cloud's field or type that differs only by case is deferred, and its values are not lost`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["name": .string("of A"), "rating": .int64(5)])
        try await a.set("n1", ["text": .string("of A")], type: "note")
        try await b.set("lofoten", ["Name": .string("of B")])
        try await b.set("n2", ["text": .string("of B")], type: "Note")
        #expect(try await a.engine.sync().isComplete)
        #expect(try await b.engine.sync().deferred == 2)
        #expect(try b.records()["senja"] == ["rating": .int64(5)])
        #expect(try b.records("Note").keys.sorted() == ["n2"])
        let reader = try b.reader()
        let collisions = try reader.deferredRecords().map { try $0.nameCollision(in: reader.types()) }
        #expect(
            Set(collisions) == [
                NameCollision(.recordType, "note", "Note"), NameCollision(.field(ofType: "Destination"), "name", "Name"),
            ])
        // An edit of a common field does not change the values that B can't hold.
        try await b.set("senja", ["rating": .int64(4)])
        #expect(try await b.engine.sync().isComplete)
        _ = try await a.engine.sync()
        #expect(try a.records()["senja"] == ["name": .string("of A"), "rating": .int64(4)])
        #expect(try a.records("note").keys.sorted() == ["n1"])
        #expect(try a.reader().deferredRecords().map(\.name).sorted() == ["lofoten", "n2"])
    }

    @Test func `under the policy error both versions stay until a person decides`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in .error }
        let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
        let b = try Device(scratch["b.tidemark"], database: cloud.database(), configuration: configuration)
        for name in ["senja", "lofoten", "gone"] { try await a.set(name, ["caption": .string(name), "rating": .int64(1)]) }
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await a.set("senja", ["caption": .string("of A")])
        try await a.delete("gone")
        _ = try await a.engine.sync()
        try await b.set("senja", ["caption": .string("of B")])
        try await b.set("gone", ["caption": .string("of B")])
        try await b.set("lofoten", ["rating": .int64(2)])
        let report = try await b.engine.sync()
        #expect(report.exported == 1)
        #expect(report.deferred == 2)
        #expect(try b.records()["senja"]?["caption"] == .string("of B"))
        #expect(try b.reader().syncIssues(record: "senja").first?.code == "conflict")
        #expect(try await b.engine.sync().outbox.pending == 2)
        try await b.engine.resolveConflicts(of: "senja", policy: .mergeByPropertyStoreTrump)
        try await b.engine.resolveConflicts(policy: .mergeByPropertyObjectTrump)
        #expect(try await b.engine.sync().isComplete)
        _ = try await a.engine.sync()
        #expect(try a.records() == b.records())
        #expect(try a.records()["senja"]?["caption"] == .string("of A"))
        #expect(try a.records()["gone"]?["caption"] == .string("of B"))
    }

    @Test func `a conflict with a record that the cloud has lost ends, and the local version is sent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in .error }
        let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
        let b = try Device(scratch["b.tidemark"], database: cloud.database(), configuration: configuration)
        try await a.set("senja", ["caption": .string("of A")])
        _ = try await a.engine.sync()
        try await b.set("senja", ["caption": .string("of B")])
        #expect(try await b.engine.sync().deferred == 1)
        try await a.delete("senja")
        _ = try await a.engine.sync()
        let report = try await b.engine.sync()
        #expect(report.deferred == 0)
        #expect(report.isComplete)
        _ = try await a.engine.sync()
        #expect(try a.records() == ["senja": ["caption": .string("of B")]])
    }

    @Test
    func `deferred versions of lost records are removed when everything is fetched again, and edits are sent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in .error }
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database, configuration: configuration)
        let b = try Device(scratch["b.tidemark"], database: database, configuration: configuration)
        try await a.set("senja", ["caption": .string("of A")])
        try await a.set("lofoten", ["caption": .string("of A")])
        try await a.set("photo", ["caption": .string("of A")], type: "Photo")
        _ = try await a.engine.sync()
        for name in ["senja", "lofoten", "photo"] { try await b.set(name, ["caption": .string("of B")]) }
        #expect(try await b.engine.sync().deferred == 3)
        // The cloud loses all records but one.
        let zone = CloudZoneID(SyncConfiguration().zoneName)
        let all = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).changes
        try await database.modifyZones(saving: [], deleting: [zone])
        try await database.modifyZones(saving: [zone], deleting: [])
        for case .saved(let record) in all where record.id.recordName == "lofoten" {
            let operation = RecordOperation.save(CloudRecord(record.id, type: record.type, fields: record.fields))
            _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [operation]))
        }
        let report = try await b.engine.sync()
        #expect(try b.reader().deferredRecords().map(\.name) == ["lofoten"])
        #expect(try b.reader().syncIssues().map(\.record) == ["lofoten"])
        #expect(report.exported == 2)
        _ = try await b.engine.resolveConflicts(policy: .mergeByPropertyStoreTrump)
        #expect(try await b.engine.sync().isComplete)
        let there = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).changes
        let captions = there.reduce(into: [String: CloudValue]()) { captions, change in
            if case .saved(let record) = change { captions[record.id.recordName] = record.fields["caption"] }
        }
        #expect(captions == ["senja": .string("of B"), "lofoten": .string("of A"), "photo": .string("of B")])
    }

    @Test func `a record that was deleted and made again in a conflict is sent if the cloud has lost it`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        var configuration = SyncConfiguration()
        configuration.mergePolicy = { _ in .error }
        let a = try Device(scratch["a.tidemark"], database: cloud.database(), configuration: configuration)
        let b = try Device(scratch["b.tidemark"], database: cloud.database(), configuration: configuration)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await a.set("senja", ["caption": .string("of A")])
        _ = try await a.engine.sync()
        try await b.delete("senja")
        #expect(try await b.engine.sync().deferred == 1)
        try await b.set("senja", ["caption": .string("of B")])
        #expect(try await b.engine.sync().outbox.pending == 2)
        try await a.delete("senja")
        _ = try await a.engine.sync()
        let report = try await b.engine.sync()
        #expect(report.deferred == 0)
        #expect(report.isComplete)
        _ = try await a.engine.sync()
        #expect(try a.records() == ["senja": ["caption": .string("of B")]])
    }

    @Test func `emptying a field here does not empty the cloud's value that the store can't hold`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await b.set("other", ["rating": .string("good")])
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await b.set("senja", ["rating": .string("bad")])
        _ = try await b.engine.sync()
        try await b.set("senja", ["rating": nil, "caption": nil])
        #expect(try await b.engine.sync().exported == 1)
        _ = try await a.engine.sync()
        #expect(try a.records() == ["senja": ["rating": .int64(5)]])
    }

    @Test func `an empty list of the cloud does not count as another type if the store has a list`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let device = try Device(scratch["a.tidemark"], database: cloud.database())
        try await device.set("senja", ["tags": .list([.string("sea")], of: .string), "caption": .string("Senja")])
        let fields = FieldCoding.encode(["tags": .list([], of: .int64), "caption": .list([], of: .string)])
        try DamagedRows.run(device.container.store(.private)) { db in
            try db.execute(
                sql: """
                    INSERT INTO tide_deferred (zone, name, type, tag, reason, fields)
                    VALUES (1, 'd1', 'Destination', 't', 'schema', ?)
                    """, arguments: [fields])
        }
        let reader = try device.reader()
        let deferred = try #require(reader.deferredRecords().first)
        let conflicts = try deferred.fieldTypeConflicts(in: reader.types())
        #expect(conflicts.map { "\($0.field) \($0.here) \($0.cloud)" } == ["caption string list<string>"])
    }

    @Test func `a field with another type in the cloud is not sent, is reported, and is tried again when the record changes`()
        async throws
    {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await b.set("other", ["rating": .string("good")])
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
        _ = try await a.engine.sync()
        // The device imports the values that it can hold, and reports the reason for both others.
        let report = try await b.engine.sync()
        #expect(report.deferred == 1)
        #expect(report.outbox.pending == 1)
        // Its export has sent nothing, and reports that count.
        let export = try #require(try b.reader().events().map(\.event).last { $0.kind == .export })
        #expect(export.records == 0 && export.totalRecords == 1 && export.failure == nil)
        #expect(try b.records()["senja"] == ["caption": .string("Senja")])
        let reader = try b.reader()
        let deferred = try reader.deferredRecords()
        #expect(deferred.map(\.reason) == [.schema])
        let conflicts = try #require(try deferred.first?.fieldTypeConflicts(in: reader.types()))
        #expect(conflicts.map { "\($0.field) \($0.here) \($0.cloud)" } == ["rating string int64"])
        let entry = try #require(try b.reader().syncIssues(record: "other").first)
        #expect(entry.code == "invalidArguments")
        #expect(entry.reason?.hasPrefix("Invalid value for 'rating', expected type int64, got string. In development") == true)
        // Its other fields are sent and fetched, and none of A's values changes.
        try await b.set("senja", ["caption": .string("of B")])
        #expect(try await b.engine.sync().exported == 1)
        _ = try await a.engine.sync()
        #expect(try a.records() == ["senja": ["caption": .string("of B"), "rating": .int64(5)]])
        // A change that a merge has released is tried again in the same synchronisation, though the merge is in its last page.
        try await b.set("senja", ["rating": .string("bad")])
        _ = try await b.engine.sync()
        let more = (0..<500).map { number in
            RecordEdit(
                record: RecordName(type: "Photo", name: "p\(number)"), base: .any, values: ["title": .string("Photo")],
                fields: ["title"])
        }
        try await a.store.apply(more, schemas: [RecordTypeSchema(name: "Photo", fields: [.init(name: "title", type: .string)])])
        _ = try await a.engine.sync()
        try await a.set("senja", ["caption": .string("of A")])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        #expect(try b.reader().syncIssues(record: "senja").first?.code == "invalidArguments")
        #expect(try b.records()["senja"] == ["caption": .string("of A"), "rating": .string("bad")])
    }

    @Test func `a deferred version does not bring back a record that was deleted since`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("senja", ["caption": .string("Senja"), "rating": .int64(5)])
        _ = try await a.engine.sync()
        try await b.set("other", ["rating": .string("good")])
        #expect(try await b.engine.sync().deferred == 1)
        // The deferred version is removed with the record.
        try await b.delete("senja")
        #expect(try await b.engine.sync().deferred == 0)
        try await b.set("senja", ["caption": .string("made again")])
        #expect(try await b.engine.sync().exported == 1)
        // A deferred version that is older than the version of a pending deletion.
        try await a.set("mefjord", ["caption": .string("Mefjord"), "rating": .int64(1)])
        _ = try await a.engine.sync()
        #expect(try await b.engine.sync().deferred == 1)
        try await b.set("mefjord", ["caption": .string("of B")])
        #expect(try await b.engine.sync().exported == 1)
        try await b.delete("mefjord")
        let photo = RecordTypeSchema(name: "Photo", fields: [.init(name: "title", type: .string)])
        try await b.store.declare([photo], environment: .development)
        _ = try await b.engine.sync()
        #expect(try b.records().keys.sorted() == ["other", "senja"])
        _ = try await a.engine.sync()
        #expect(try a.records() == ["senja": ["caption": .string("made again")]])
    }

    @Test func `an edit that the deleting device can't hold brings a record back, like every edit`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await b.store.declare(
            [RecordTypeSchema(name: "Destination", fields: [.init(name: "rating", type: .string)])], environment: .development)
        try await a.set("senja", ["caption": .string("Senja")])
        try await a.set("other", ["rating": .int64(1)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await b.delete("senja")
        try await a.set("senja", ["rating": .int64(5)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        #expect(try b.records()["senja"] == ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        #expect(try a.records()["senja"] == ["caption": .string("Senja"), "rating": .int64(5)])
    }

    @Test func `children that arrive before their parents get them when these arrive`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let zone = CloudZoneID("TidemarkZone")
        try await database.modifyZones(saving: [zone], deleting: [])
        let child = CloudRecord(
            CloudRecordID("child", in: zone), type: "Photo", fields: ["of": .reference(CloudReference("parent"))])
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(child)]))
        let a = try Device(scratch["a.tidemark"], database: database)
        _ = try await a.engine.sync()
        #expect(try a.records("Photo") == ["child": ["of": .reference("parent")]])
        let parent = CloudRecord(CloudRecordID("parent", in: zone), type: "Destination", fields: ["caption": .string("P")])
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(parent)]))
        _ = try await a.engine.sync()
        #expect(try a.records().keys.sorted() == ["parent"])
    }

    @Test(
        arguments: [
            ("a b", true), (" ", true), ("é", true), (String(repeating: "n", count: 255), true), ("", false), ("a\u{1f}b", false),
            ("a\u{7f}", false), (String(repeating: "n", count: 256), false),
        ] as [(String, Bool)])
    func `a record of the cloud is stored under every valid name, and deferred under any other`(
        name: String, comes: Bool
    ) async throws {
        let scratch = try Scratch()
        let device = try ZonedDevice(scratch["a.tidemark"])
        let values: [String: FieldValue] = ["caption": .string("Senja")]
        let record = RemoteRecord(name: name, type: "Destination", tag: "t1", values: values, edited: nil, whole: { Data() })
        try await device.take([.saved(record)], in: .default)
        #expect(try device.reader().deferredRecords().count == (comes ? 0 : 1))
        #expect(try device.values() == (comes ? ["_defaultZone": [name: values]] : [:]))
    }

    @Test func `values of every type arrive as they were sent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        let values: [String: FieldValue] = [
            "s": .string("a\u{301}\n\"é 🇳🇴"), "i": .int64(.min), "d": .double(0.1), "whole": .double(3), "t": .timestamp(-1),
            "b": .bytes([0, 255, 1]), "l": .location(Location(latitude: 69.5, longitude: 17, altitude: 0.25)),
            "r": .reference("other"), "strings": .list([.string("x"), .string("y\"z")], of: .string),
            "numbers": .list([.int64(1), .int64(-2)], of: .int64), "reals": .list([.double(0.5), .double(3)], of: .double),
            "times": .list([.timestamp(0), .timestamp(5)], of: .timestamp),
            "references": .list([.reference("p"), .reference("q")], of: .reference), "none": .list([], of: .string),
        ]
        try await a.set("all", values)
        #expect(try await a.engine.sync().isComplete)
        _ = try await b.engine.sync()
        #expect(try b.records() == a.records())
        #expect(try b.records()["all"]?.count == 14)
        // The values don't count as changes afterwards.
        #expect(try await b.engine.sync().exported == 0)
        let before = try a.reader().historyToken()
        _ = try await a.engine.sync()
        #expect(try a.reader().changes(since: before).transactions.isEmpty)
    }
}

extension EmbeddedCloud {
    /// Adds the types of the tests to the production schema.
    func deploySchemaOfEverything(_ cloud: TestCloud) async throws {
        let database = try cloud.database()
        let zone = CloudZoneID("Schema")
        try await database.modifyZones(saving: [zone], deleting: [])
        let edited = CloudValue.string("")
        let records = [
            CloudRecord(
                CloudRecordID("d", in: zone), type: "Destination",
                fields: ["caption": .string(""), "rating": .int64(1), "tide_edited": edited]),
            CloudRecord(CloudRecordID("p", in: zone), type: "Photo", fields: ["title": .string(""), "tide_edited": edited]),
        ]
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: records.map { .save($0) }))
        try await deploySchema(of: TestCloud.container)
    }
}
