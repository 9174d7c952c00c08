import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync
import TidemarkTransfer

/// Goal: damaged values of a store are not sent, and are repaired if the right value is known. Method: values are changed in the
/// database file without the store, and devices synchronise through a real cloud.
@Suite(.timeLimit(.minutes(30))) struct DamageTests {
    private func execute(_ device: Device, _ sql: String) throws {
        let queue = try DatabaseQueue(path: device.container.store(.private).path)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    private func problems(_ device: Device) throws -> [String?] {
        try StoreVerification(of: device.container).run().problems.map(\.record)
    }

    @Test func `a damaged record is not sent, the others are, and its sync issue names it`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        for name in ["one", "two", "three"] { try await a.set(name, ["caption": .string("caption of \(name)")]) }
        try execute(a, "UPDATE Destination SET caption = 'something else altogether' WHERE _key = 'two'")
        let report = try await a.engine.sync()
        #expect(report.exported == 2)
        #expect(report.outbox.pending == 1 && report.outbox.blocked == 1)
        let entry = try #require(a.reader().syncIssues(isRefused: true).first)
        #expect(entry.record == "two" && entry.code == "damaged" && entry.reason?.contains("--repair") == true)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        _ = try await b.engine.sync()
        #expect(try b.records().keys.sorted() == ["one", "three"])
        // Another synchronisation checks it again, and still does not send it.
        #expect(try await a.engine.sync().exported == 0)
        // A repaired record is sent.
        try execute(a, "UPDATE Destination SET caption = 'caption of two' WHERE _key = 'two'")
        #expect(try await a.engine.sync().isComplete)
        _ = try await b.engine.sync()
        #expect(try b.records() == a.records())
    }

    @Test func `a record that refers to a damaged one waits for it`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set("parent", ["caption": .string("parent")])
        try await a.set("child", ["caption": .string("child"), "of": .reference("parent")])
        try execute(a, "UPDATE Destination SET caption = 'nobody wrote this' WHERE _key = 'parent'")
        #expect(try await a.engine.sync().exported == 0)
        #expect(try a.reader().syncIssues(record: "child").first?.waitsFor == "parent")
        try execute(a, "UPDATE Destination SET caption = 'parent' WHERE _key = 'parent'")
        #expect(try await a.engine.sync().isComplete)
    }

    @Test func `one flipped bit of a pending record is flipped back, and the record is sent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set(
            "a", ["caption": .string("Lofoten"), "rating": .int64(5), "height": .double(1.5), "raw": .bytes([1, 2, 3])])
        _ = try await a.engine.sync()
        let damages = [
            "caption = 'Lofotdn'", "rating = 7", "height = 1.50000000000000022204", "raw = x'010207'",
            "_digest = _digest + CASE WHEN _digest & 4 THEN -4 ELSE 4 END",
        ]
        for (number, damage) in damages.enumerated() {
            try await a.set("a", ["number": .int64(Int64(number))])
            let before = try a.records()
            try execute(a, "UPDATE Destination SET \(damage) WHERE _key = 'a'")
            #expect(try problems(a) == ["a"], "\(damage)")
            let report = try await a.engine.sync()
            #expect(report.isComplete && report.exported == 1, "\(damage)")
            #expect(try a.records() == before, "\(damage)")
            #expect(try problems(a).isEmpty, "\(damage)")
        }
    }

    @Test func `a damaged record with an edit is repaired from the cloud if its tag is the same, and sent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set("a", ["caption": .string("Lofoten"), "details": .string("islands in the north"), "rating": .int64(5)])
        _ = try await a.engine.sync()
        try await a.set("a", ["caption": .string("Lofoten again")])
        try execute(a, "UPDATE Destination SET details = 'x', rating = 1000 WHERE _key = 'a'")
        #expect(try await a.engine.sync().isComplete)
        #expect(
            try a.records()["a"] == [
                "caption": .string("Lofoten again"), "details": .string("islands in the north"), "rating": .int64(5),
            ])
        #expect(try problems(a).isEmpty)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        _ = try await b.engine.sync()
        #expect(try b.records() == a.records())
    }

    @Test func `a damaged record without edits gets the cloud's values, and history calls the earlier values damaged`()
        async throws
    {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("a", ["caption": .string("Lofoten"), "details": .string("islands")])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try execute(a, "UPDATE Destination SET details = 'rubbish' WHERE _key = 'a'")
        try await b.set("a", ["caption": .string("Lofoten, edited")])
        _ = try await b.engine.sync()
        #expect(try await a.engine.sync().isComplete)
        #expect(try a.records() == b.records())
        #expect(try problems(a).isEmpty)
        let transaction = try #require(try a.reader().changes(ofRecord: "a").first?.transaction.id)
        await #expect(throws: StoreError(.damaged, "")) { try await a.store.undo(transaction: transaction, author: "test") }
        #expect(try a.records() == b.records())
    }

    @Test func `a repair takes the cloud's current version of a damaged record, unless the record has edits`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        for name in ["a", "b"] { try await a.set(name, ["caption": .string("Lofoten"), "details": .string("islands")]) }
        for device in [a, b] { _ = try await device.engine.sync() }
        try await a.set("b", ["caption": .string("of A")])
        try execute(a, "UPDATE Destination SET details = 'rubbish'")
        for name in ["a", "b"] { try await b.set(name, ["caption": .string("of B")]) }
        _ = try await b.engine.sync()
        let report = try await a.engine.repair()
        #expect(report.repaired.map(\.record.name) == ["a"] && report.repaired.map(\.source) == [.cloud])
        #expect(report.remaining.map(\.record.name) == ["b"])
        #expect(try a.records()["a"] == b.records()["a"] && problems(a) == ["b"] && a.reader().deferredRecords().isEmpty)
    }

    @Test func `a damaged reference gets the cloud's value even if its index is right, and can be deleted by the cloud`()
        async throws
    {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        do {
            let a = try Device(scratch["a.tidemark"], database: cloud.database())
            for name in ["one", "two", "three"] { try await a.set(name, ["of": .reference("target of \(name): north")]) }
            _ = try await a.engine.sync()
        }
        _ = try await b.engine.sync()
        try await Device.gone(scratch["a.tidemark"])
        try await Damage.checkpoint(scratch["a.tidemark"])
        // The table is changed, and its index is not.
        for name in ["one", "two"] {
            for byte in 0..<3 {
                try Damage.flip(scratch["a.tidemark/private.sqlite"], after: "target of \(name): ", byte: byte, bit: 1)
            }
        }
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        #expect(try Set(problems(a)) == ["one", "two", nil])
        try await b.set("one", ["of": .reference("target of one: south")])
        try await b.delete("two")
        _ = try await b.engine.sync()
        #expect(try await a.engine.sync().isComplete)
        #expect(try a.records() == b.records() && a.records().keys.sorted() == ["one", "three"])
        #expect(try problems(a).isEmpty)
    }

    @Test func `a record with a damaged name is not deleted because the cloud has no record of that name`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        for name in ["one", "two"] { try await a.set(name, ["caption": .string("caption of \(name)")]) }
        _ = try await a.engine.sync()
        try execute(a, "UPDATE Destination SET _key = 'twn' WHERE _key = 'two'")
        let report = try await a.engine.repair()
        #expect(report.repaired == [] && report.remaining.map(\.record.name) == ["twn"])
        #expect(try problems(a) == ["twn"])
        // With its right name it is whole again.
        try execute(a, "UPDATE Destination SET _key = 'two' WHERE _key = 'twn'")
        #expect(try problems(a) == [] && a.records().keys.sorted() == ["one", "two"])
    }

    @Test func `an edit of a damaged record is merged only after a repair`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        try await a.set("a", ["caption": .string("Lofoten"), "details": .string("islands"), "rating": .int64(1)])
        _ = try await a.engine.sync()
        _ = try await b.engine.sync()
        try await a.set("a", ["caption": .string("of A")])
        try execute(a, "UPDATE Destination SET details = 'rubbish' WHERE _key = 'a'")
        try await b.set("a", ["rating": .int64(2)])
        _ = try await b.engine.sync()
        let report = try await a.engine.sync()
        #expect(report.exported == 0 && report.outbox.blocked == 1 && report.deferred == 1)
        #expect(try a.reader().deferredRecords().map(\.reason) == [.damaged])
        _ = try await b.engine.sync()
        #expect(try b.records()["a"]?["details"] == .string("islands"))
        #expect(try await a.engine.repair().remaining.map(\.record.name) == ["a"])
        // A person repairs it.
        try execute(a, "UPDATE Destination SET details = 'islands' WHERE _key = 'a'")
        #expect(try await a.engine.sync().isComplete)
        _ = try await b.engine.sync()
        #expect(
            try b.records()["a"] == ["caption": .string("of A"), "details": .string("islands"), "rating": .int64(2)])
        #expect(try a.records() == b.records())
        #expect(try a.reader().deferredRecords().isEmpty)
    }

    @Test func `a damaged record can only be deleted or accepted`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        for name in ["a", "b", "c"] { try await a.set(name, ["caption": .string("caption"), "rating": .int64(1)]) }
        _ = try await a.engine.sync()
        try execute(a, "UPDATE Destination SET caption = 'rubbish' WHERE _key <> 'c'")
        await #expect(throws: StoreError(.damaged, "")) { try await a.set("a", ["rating": .int64(2)]) }
        await #expect(throws: StoreError(.damaged, "")) {
            _ = try await a.store.update(
                matching: RecordQuery(type: "Destination"), set: ["rating": .int64(2)], author: Device.author)
        }
        #expect(try a.records()["c"]?["rating"] == .int64(1))
        try await a.delete("a")
        let deletion = try #require(try a.reader().changes(ofRecord: "a").first?.transaction.id)
        await #expect(throws: StoreError(.damaged, "")) { try await a.store.undo(transaction: deletion, author: "test") }
        let accepted = try await a.store.accept(try await a.store.damagedRows())
        #expect(accepted.map(\.record.name) == ["b"])
        #expect(try problems(a).isEmpty)
        #expect(try await a.engine.sync().isComplete)
        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        _ = try await b.engine.sync()
        #expect(try b.records() == a.records())
        #expect(try b.records()["b"]?["caption"] == .string("rubbish"))
    }

    @Test func `an earlier value of the record repairs it`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        try await a.set("a", ["caption": .string("first")])
        try await a.set("a", ["caption": .string("second")])
        try await a.set("a", ["caption": .string("first")])
        try execute(a, "UPDATE Destination SET caption = 'rubbish' WHERE _key = 'a'")
        let repaired = try await a.store.repair(try await a.store.damagedRows())
        #expect(repaired.map(\.source) == [.history])
        #expect(try a.records()["a"]?["caption"] == .string("first"))
        #expect(try problems(a).isEmpty)
    }

    @Test func `hundreds of flipped bits are neither sent, merged, backed up nor kept`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let count = 1200
        var expected: [String: [String: FieldValue]]
        do {
            let a = try Device(scratch["a.tidemark"], database: cloud.database())
            let edits = (0..<count).map { index in
                let values: [String: FieldValue] = [
                    "caption": .string("<caption \(index)>" + String(repeating: "c", count: 40)),
                    "details": .string("<details \(index)>" + String(repeating: "d", count: 200)), "rating": .int64(Int64(index)),
                ]
                return RecordEdit(
                    record: RecordName(type: "Destination", name: "r\(index)"), base: .any, values: values,
                    fields: Set(values.keys))
            }
            let fields = [("caption", FieldType.string), ("details", .string), ("rating", .int64)]
            try await a.store.apply(
                edits, schemas: [RecordTypeSchema(name: "Destination", fields: fields.map { .init(name: $0.0, type: $0.1) })])
            #expect(try await a.engine.sync(patience: .seconds(600)).isComplete)
            // A third of them have pending edits.
            try await a.store.apply(
                stride(from: 0, to: count, by: 3).map { index in
                    RecordEdit(
                        record: RecordName(type: "Destination", name: "r\(index)"), base: .any,
                        values: ["rating": .int64(Int64(-index))], fields: ["rating"])
                }, schemas: [])
            expected = try a.records()
        }
        try await Device.gone(scratch["a.tidemark"])
        try await Damage.checkpoint(scratch["a.tidemark"])
        var random = Randomness("flips of bits in records")
        // Some get two flipped bits, which the digest alone can't repair.
        let damaged = Array((0..<count).shuffled(using: &random).prefix(600))
        let file = scratch["a.tidemark/private.sqlite"]
        var data = try Data(contentsOf: file)
        for (place, index) in damaged.enumerated() {
            let (field, length) = Bool.random(using: &random) ? ("caption", 40) : ("details", 200)
            let flips = (0..<(place % 4 == 0 ? 2 : 1)).map { _ in
                (Int.random(in: 0..<length, using: &random), UInt8(1) << UInt8.random(in: 0..<7, using: &random))
            }
            // The free space of pages may have old copies of a row, too.
            var rest = data.startIndex..<data.endIndex
            while let found = data.range(of: Data("<\(field) \(index)>".utf8), in: rest) {
                for (byte, mask) in flips { data[found.upperBound + byte] ^= mask }
                rest = found.upperBound..<data.endIndex
            }
        }
        try data.write(to: file)

        let a = try Device(scratch["a.tidemark"], database: cloud.database())
        let names = Set(damaged.map { "r\($0)" })
        // Two flips may hit the same bit.
        let found = Set(try problems(a).compactMap { $0 })
        #expect(found.isSubset(of: names) && found.count > 580)
        #expect(throws: StoreError(.damaged, "")) {
            try ContainerBackup(of: a.container, to: scratch["backup.tidemark"]).run()
        }
        #expect(!FileManager.default.fileExists(atPath: scratch["backup.tidemark"].path))

        let b = try Device(scratch["b.tidemark"], database: cloud.database())
        _ = try await b.engine.sync(patience: .seconds(600))
        for index in stride(from: 1, to: count, by: 5) { try await b.set("r\(index)", ["caption": .string("of B")]) }
        _ = try await b.engine.sync(patience: .seconds(600))
        for index in stride(from: 1, to: count, by: 5) { expected["r\(index)"]?["caption"] = .string("of B") }
        _ = try await a.engine.sync(patience: .seconds(600))
        _ = try await b.engine.sync(patience: .seconds(600))
        for (name, values) in try b.records() {
            for (field, value) in values where field != "rating" {
                #expect(value == expected[name]?[field], "\(name).\(field)")
            }
        }
        let report = try await a.engine.repair()
        // What is left has edits on both sides and two flipped bits: its values can't be known.
        for left in report.remaining { #expect(left.isPending) }
        print("flips: \(found.count) damaged, \(report.repaired.count) repaired, \(report.remaining.count) left")
        _ = try await a.engine.sync(patience: .seconds(600))
        _ = try await b.engine.sync(patience: .seconds(600))
        let left = Set(report.remaining.map(\.record.name))
        #expect(left.count <= 40)
        let (ours, theirs) = (try a.records(), try b.records())
        for name in expected.keys where !left.contains(name) {
            #expect(ours[name] == expected[name])
            #expect(theirs[name] == expected[name])
        }
        #expect(Set(try problems(a).compactMap { $0 }) == left)
        #expect(try problems(b).isEmpty)
    }

    @Test func `unsent edits are set aside when the cloud's copy is deleted permanently, and can be restored`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        try await a.set("lofoten", ["caption": .string("Lofoten")])
        try await database.purgeZone(CloudZoneID("TidemarkZone"))
        let report = try await a.engine.sync()
        #expect(report.failure?.reason.contains("1 unsent change was set aside") == true, "\(report.failure?.reason ?? "")")
        #expect(try lastFailure(a) == report.failure.map { "userDeletedZone: \($0.reason)" })
        #expect(try a.records().isEmpty)
        let quarantine = try #require(try a.container.quarantines().first)
        #expect(quarantine.pending == 1)
        let outcome = try await a.store.restore(
            quarantine, all: false, author: "test", policy: { _ in .mergeByPropertyObjectTrump })
        #expect(outcome.counts.inserted == 1)
        #expect(try a.records().keys.sorted() == ["lofoten"])
        #expect(try await a.engine.sync().exported == 0)
    }

    @Test func `a permanent deletion of the cloud's copy sets nothing aside if nothing was unsent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let database = try cloud.database()
        let a = try Device(scratch["a.tidemark"], database: database)
        try await a.set("senja", ["caption": .string("Senja")])
        _ = try await a.engine.sync()
        try await database.purgeZone(CloudZoneID("TidemarkZone"))
        _ = try await a.engine.sync()
        #expect(try a.records().isEmpty && a.container.quarantines().isEmpty)
        // Emptying the store removes the reasons of all other events.
        #expect(try lastFailure(a) == "userDeletedZone: Zone 'TidemarkZone' was deleted by its owner, for good")
    }

    /// The reason of the last failed event in the log.
    private func lastFailure(_ device: Device) throws -> String? {
        try device.reader().events().last { $0.event.failure != nil }?.event.failure?.reason
    }

    @Test func `an asset that was damaged after it was stored is not sent`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let picture = Picture.png(1)
        try scratch.write(picture, to: "pictures/1.png")
        try scratch.writeLines([#"{"id": "p", "image": "pictures/1.png"}"#], to: "manifest.jsonl")
        _ = try await scratch.importing(scratch["manifest.jsonl"], .destination { $0.assetFields = ["image"] })
        let a = try Device(scratch.container, database: cloud.database())
        #expect(try await a.engine.sync().isComplete)
        // Another account's cloud has no copy of it.
        let id = try #require(try a.records()["p"]?["image"]?.assetIDs.first)
        let file = try #require(a.store.file(of: id))
        var content = try Data(contentsOf: file)
        content[content.count / 2] ^= 0x10
        chmod(file.path, 0o600)
        try content.write(to: file)
        try await a.store.forgetCloud(user: nil)
        let other = try await cloud.cloud.addAccount("ben@example.org")
        let theirs = try cloud.cloud.database(.private, of: TestCloud.container, environment: .development, account: other.id)
        let recording = RecordingDatabase(theirs)
        a.engine.close()
        let again = try Device(scratch.container, database: recording)
        let report = try await again.engine.sync()
        #expect(report.exported == 0 && recording.uploads == 0)
        #expect(try again.reader().syncIssues(record: "p").first?.code == "assetNotAvailable")
    }

    @Test func `damaged records are looked up in the cloud together, as many as a request may hold`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        var limits = CloudLimits()
        limits.operationsPerRequest = 2
        recording.announces(limits)
        let a = try Device(scratch["a.tidemark"], database: recording)
        for name in ["one", "two", "three"] { try await a.set(name, ["caption": .string("caption of \(name)")]) }
        #expect(try await a.engine.sync().isComplete)
        let (records, before) = (try a.records(), recording.lookups.count)
        try execute(a, "UPDATE Destination SET caption = 'rubbish'")
        #expect(try await a.engine.repair().remaining.isEmpty)
        #expect(recording.lookups.dropFirst(before).map(\.count) == [2, 1])
        #expect(try a.records() == records && problems(a).isEmpty)
    }
}
