import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: after a cloud is restored to an earlier state, nothing that it had acknowledged is lost while a device has it, and all
/// devices end with the same records. Method: backups of a cloud that are restored after more was synchronised, by the
/// restoration and by hand; whole stores compared.
@Suite(.timeLimit(.minutes(30))) struct RestoredCloudTests {
    private let scratch = try! Scratch()

    private func text(_ value: FieldValue?) -> String? { if case .string(let text) = value { text } else { nil } }

    private func texts(_ device: Device) throws -> [String: [String: String]] {
        try device.records().mapValues { $0.compactMapValues { text($0) } }
    }

    private func texts(_ cloud: RestoredCloud) async throws -> [String: [String: String]] {
        try await cloud.records().mapValues { fields in
            fields.compactMapValues { if case .string(let text) = $0 { text } else { nil } }
        }
    }

    @Test(arguments: [[0, 1], [1, 0]])
    func `changes acknowledged after a backup are sent again, and deleted records stay deleted`(order: [Int]) async throws {
        let world = try await RestoredCloud(scratch)
        let (a, b) = (world.devices[0], world.devices[1])
        for name in ["kept", "edited", "deleted", "deleted before"] {
            try await a.set(name, ["caption": .string("first"), "note": .string("first")])
        }
        try await world.sync(0)
        try await world.sync(1)
        try await a.delete("deleted before")
        try await world.sync(0)
        let backup = try world.backup()

        try await a.set("edited", ["caption": .string("second")])
        try await b.set("edited", ["note": .string("second of B")])
        try await a.set("new", ["caption": .string("of A")])
        try await b.set("new of B", ["caption": .string("of B")])
        try await b.delete("deleted")
        for number in [0, 1, 0] { try await world.sync(number) }
        #expect(try texts(a)["deleted"] == nil)

        try await world.restore(backup)
        // The cloud has lost all of it, and continues its count.
        try await world.devices[order[0]].set("after", ["caption": .string("after")])
        for number in order { try await world.sync(number) }
        try await world.syncAll()
        let wanted = [
            "kept": ["caption": "first", "note": "first"], "edited": ["caption": "second", "note": "second of B"],
            "new": ["caption": "of A"], "new of B": ["caption": "of B"], "after": ["caption": "after"],
        ]
        for device in world.devices { #expect(try texts(device) == wanted) }
        #expect(try await texts(world) == wanted)
    }

    @Test func `a device that was away before the backup fetches the cloud's records, and sends its unsent ones`() async throws {
        let world = try await RestoredCloud(scratch)
        for name in ["a", "b"] { try await world.devices[0].set(name, ["caption": .string("first")]) }
        try await world.sync(0)
        try await world.sync(1)
        try await world.devices[1].set("b", ["note": .string("of B, not sent")])
        try await world.devices[0].set("a", ["caption": .string("second")])
        try await world.devices[0].set("b", ["caption": .string("second")])
        try await world.sync(0)
        let backup = try world.backup()
        try await world.devices[0].set("a", ["caption": .string("third")])
        try await world.sync(0)
        try await world.restore(backup)
        try await world.sync(1)
        #expect(try texts(world.devices[1])["a"] == ["caption": "second"])
        try await world.syncAll()
        let wanted = ["a": ["caption": "third"], "b": ["caption": "second", "note": "of B, not sent"]]
        for device in world.devices { #expect(try texts(device) == wanted) }
    }

    @Test func `a conflict that is left to a person drops the record's tag only while records are compared`() async throws {
        let world = try await RestoredCloud(scratch, policy: .error)
        /// The first device's change tag of a record.
        func tag(_ name: String) throws -> String? {
            let queue = try DatabaseQueue(path: world.devices[0].container.store(.private).path)
            defer { try? queue.close() }
            let sql = "SELECT _tag FROM Destination WHERE _key = ?"
            return try queue.read { db in try String.fetchOne(db, sql: sql, arguments: [name]) }
        }
        for name in ["a", "b"] { try await world.devices[0].set(name, ["caption": .string("first")]) }
        try await world.syncAll()
        for (number, caption) in ["of A", "of B"].enumerated() {
            try await world.devices[number].set("a", ["caption": .string(caption)])
        }
        let known = try tag("a")
        for number in [1, 0] { try await world.sync(number) }
        #expect(try world.devices[0].reader().deferredRecords().map(\.reason) == [.conflict])
        #expect(try tag("a") == known && known != nil)
        try await world.devices[0].engine.resolveConflicts(policy: .mergeByPropertyObjectTrump)
        try await world.syncAll()

        // The restored cloud gets an edit of the other device that was made afterwards.
        try await world.devices[0].set("b", ["caption": .string("of A")])
        try await world.restore(try world.backup())
        try await world.devices[1].set("b", ["caption": .string("of B")])
        for number in [1, 0] { try await world.sync(number) }
        #expect(try world.devices[0].reader().deferredRecords().map(\.reason) == [.conflict])
        #expect(try tag("b") == nil)
        try await world.devices[0].engine.resolveConflicts(policy: .mergeByPropertyObjectTrump)
        try await world.syncAll()
        for device in world.devices { #expect(try texts(device) == ["a": ["caption": "of A"], "b": ["caption": "of A"]]) }
    }

    @Test
    func `one flipped bit of a record is flipped back before the record is compared with the cloud's older one`() async throws {
        let world = try await RestoredCloud(scratch)
        try await world.devices[0].set("a", ["caption": .string("first")])
        try await world.sync(0)
        let backup = try world.backup()
        try await world.devices[0].set("a", ["caption": .string("second")])
        try await world.sync(0)
        try await world.restore(backup)
        let queue = try DatabaseQueue(path: world.devices[0].container.store(.private).path)
        try await queue.write { db in try db.execute(sql: "UPDATE Destination SET caption = 'secone' WHERE _key = 'a'") }
        try queue.close()
        try await world.syncAll()
        for device in world.devices { #expect(try texts(device) == ["a": ["caption": "second"]]) }
    }

    @Test func `a cloud that was restored by hand is detected by a token that is ahead of it`() async throws {
        let world = try await RestoredCloud(scratch)
        try await world.devices[0].set("a", ["caption": .string("first")])
        try await world.sync(0)
        try await world.sync(1)
        let copy = try world.copy()
        let before = try await world.database().zoneChanges(CloudZoneID("TidemarkZone"), since: nil, limit: nil, desiredKeys: nil)
        for number in 2...9 {
            try await world.devices[0].set("a", ["caption": .string("\(number)")])
            try await world.sync(0)
        }
        try await world.devices[0].set("new", ["caption": .string("of A")])
        try await world.sync(0)

        try await world.use(copy)
        try await world.devices[1].set("b", ["caption": .string("of B")])
        try await world.sync(1)
        let then = try await world.database().zoneChanges(CloudZoneID("TidemarkZone"), since: nil, limit: nil, desiredKeys: nil)
        #expect(then.incarnation == before.incarnation && before.incarnation != nil)
        try await world.syncAll()
        let now = try await world.database().zoneChanges(CloudZoneID("TidemarkZone"), since: nil, limit: nil, desiredKeys: nil)
        #expect(now.incarnation != before.incarnation)
        let wanted = ["a": ["caption": "9"], "b": ["caption": "of B"], "new": ["caption": "of A"]]
        for device in world.devices { #expect(try texts(device) == wanted) }
        #expect(try await texts(world) == wanted)
    }

    @Test func `a device that has only sent since a copy sends again once the cloud has another incarnation`() async throws {
        let world = try await RestoredCloud(scratch)
        try await world.devices[0].set("a", ["caption": .string("first")])
        try await world.syncAll()
        let copy = try world.copy()
        try await world.devices[0].set("new", ["caption": .string("of A")])
        try await world.sync(0)
        try await world.use(copy)
        // Its token is older than the copy.
        try await world.sync(0)
        #expect(try await texts(world)["new"] == nil)
        #expect(try await world.cloud.beginIncarnations().environments == 1)
        try await world.syncAll()
        let wanted = ["a": ["caption": "first"], "new": ["caption": "of A"]]
        for device in world.devices { #expect(try texts(device) == wanted) }
        #expect(try await texts(world) == wanted)
    }

    @Test(arguments: [[0, 1], [1, 0]])
    func `a cloud that was restored by hand is detected even after it has counted past the tokens`(order: [Int]) async throws {
        let world = try await RestoredCloud(scratch)
        for name in ["a", "b"] { try await world.devices[0].set(name, ["caption": .string("first")]) }
        try await world.sync(0)
        try await world.sync(1)
        let copy = try world.copy()
        try await world.devices[0].set("a", ["caption": .string("second")])
        try await world.devices[0].set("new", ["caption": .string("of A")])
        try await world.sync(0)
        try await world.devices[1].set("b", ["note": .string("of B")])
        for number in [1, 0, 1, 0] { try await world.sync(number) }

        try await world.use(copy)
        let before = try await world.changes()
        // Another client without a token makes the cloud give out more numbers than it had given out before.
        let (zone, other) = (CloudZoneID("TidemarkZone"), "other")
        var tag: String?
        for number in 1...40 {
            let record = CloudRecord(
                CloudRecordID(other, in: zone), type: "Other", fields: ["text": .string("\(number)")], changeTag: tag)
            let outcome = try await world.database().modify(ModifyRecordsRequest(zone: zone, operations: [.save(record)]))[0]
            guard case .saved(let saved) = outcome else { throw CloudError(.internalError, "\(outcome)") }
            tag = saved.changeTag
        }
        #expect(try await world.changes().incarnation == before.incarnation && before.incarnation != nil)
        for number in order { try await world.sync(number) }
        try await world.syncAll()
        #expect(try await world.changes().incarnation != before.incarnation)
        let wanted = ["a": ["caption": "second"], "b": ["caption": "first", "note": "of B"], "new": ["caption": "of A"]]
        for device in world.devices { #expect(try texts(device).filter { $0.key != other } == wanted) }
        #expect(try await texts(world).filter { $0.key != other } == wanted)
    }

    @Test func `opening a cloud again and again, or using a copy at once, expires no token`() async throws {
        let world = try await RestoredCloud(scratch)
        let zone = CloudZoneID("TidemarkZone")
        try await world.devices[0].set("a", ["caption": .string("first")])
        try await world.sync(0)
        let first = try await world.changes()
        for number in 0..<4 {
            // Nothing was lost: the copy has all changes that the tokens cover.
            if number.isMultiple(of: 2) { try await world.use(world.directory) } else { try await world.use(try world.copy()) }
            try await world.devices[0].set("a", ["caption": .string("\(number)")])
            try await world.sync(0)
            let page = try await world.database().zoneChanges(zone, since: first.token, limit: nil, desiredKeys: nil)
            #expect(page.incarnation == first.incarnation && page.changes.count == 1)
        }
        #expect(try #require(Data(base64Encoded: first.token.rawValue)).base64EncodedString() == first.token.rawValue)
    }

    @Test func `a tag of a lost time makes a client fetch everything, and an invented tag does not`() async throws {
        let world = try await RestoredCloud(scratch)
        let zone = CloudZoneID("Own")
        let id = CloudRecordID("a", in: zone)
        func save(_ tag: String?) async throws -> RecordOutcome {
            let record = CloudRecord(id, type: "Note", fields: ["text": .string("x")], changeTag: tag)
            return try await world.database().modify(ModifyRecordsRequest(zone: zone, operations: [.save(record)]))[0]
        }
        func tag(_ outcome: RecordOutcome) throws -> String {
            guard case .saved(let record) = outcome else { throw CloudError(.internalError, "\(outcome)") }
            return try #require(record.changeTag)
        }
        try await world.database().modifyZones(saving: [zone], deleting: [])
        let first = try tag(try await save(nil))
        let backup = try world.backup()
        let lost = try tag(try await save(first))
        try await world.restore(backup)
        await #expect(throws: CloudError(.changeTokenExpired, "")) { try await save(lost) }
        for other in ["1", "bogus", "zzzz", String(lost.reversed())] {
            guard case .failed(let error) = try await save(other) else { throw CloudError(.internalError, "saved") }
            #expect(error.code == .serverRecordChanged)
        }
        let second = try tag(try await save(first))
        #expect(second != lost && second != first)
    }

    @Test
    func `all devices end with the same records and lose none, however often the cloud is restored`() async throws {
        var random = Randomness("a cloud that is put back")
        for round in 0..<6 {
            let scratch = try Scratch()
            let world = try await RestoredCloud(scratch, devices: 3, policy: .latestEdit)
            var (last, gone): ([String: [String: String]], Set<String>) = ([:], [])
            var backups: [URL] = []
            var log: [String] = []
            var number = 0
            for _ in 0..<40 {
                let device = Int.random(in: 0..<3, using: &random)
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<9:
                    let name = "r\(Int.random(in: 0..<6, using: &random))"
                    guard !gone.contains(name) else { continue }
                    let field = ["caption", "note", "place"].randomElement(using: &random)!
                    number += 1
                    try await world.devices[device].set(name, [field: .string("\(number)")])
                    last[name, default: [:]][field] = "\(number)"
                    log.append("d\(device) sets \(name).\(field) = \(number)")
                case 9..<10:
                    // All have it unchanged, and none edits it any more.
                    try await world.syncAll()
                    guard let name = try texts(world.devices[device]).keys.sorted().randomElement(using: &random) else {
                        continue
                    }
                    try await world.devices[device].delete(name)
                    gone.insert(name)
                    last[name] = nil
                    log.append("d\(device) deletes \(name)")
                case 10..<16:
                    try await world.sync(device)
                    log.append("d\(device) syncs")
                case 16..<18:
                    backups.append(try world.backup())
                    log.append("backup \(backups.count - 1)")
                default:
                    guard !backups.isEmpty else { continue }
                    let index = Int.random(in: 0..<backups.count, using: &random)
                    try await world.restore(backups[index])
                    log.append("restore \(index)")
                }
            }
            try await world.syncAll()
            let what = "round \(round): \(log.joined(separator: "; "))"
            for device in world.devices {
                let found = try texts(device)
                #expect(found == last, "\(found), not \(last). \(what)")
            }
            #expect(try await texts(world) == last, "\(what)")
        }
    }

    @Test func `a record that is damaged in the cloud is a separate error, and is restored by a device that has it whole`()
        async throws
    {
        let world = try await RestoredCloud(scratch)
        for name in ["a", "b", "c"] {
            try await world.devices[0].set(name, ["caption": .string("caption of \(name)"), "note": .string("note")])
        }
        try await world.sync(0)
        try DamagedRows.flip(
            in: world.directory.appendingPathComponent("containers/\(TestCloud.container)/development/records.sqlite"),
            record: "b")
        let first = try await world.sync(1)
        #expect(first.failure == nil && first.deferred == 1)
        #expect(Set(try texts(world.devices[1]).keys) == ["a", "c"])
        // The other device learns of the damage, and has the record whole.
        let second = try await world.sync(0)
        #expect(second.failure == nil && second.deferred == 0 && second.exported == 1)
        let third = try await world.sync(1)
        #expect(third.deferred == 0)
        let wanted = try texts(world.devices[0])
        #expect(wanted["b"] == ["caption": "caption of b", "note": "note"])
        #expect(try texts(world.devices[1]) == wanted)
        #expect(try await texts(world) == wanted)
        #expect(try CloudVerification(of: world.directory).run().problems == [])
    }

    @Test func `an edit of a record that is damaged in the cloud waits until the whole record was sent`() async throws {
        let world = try await RestoredCloud(scratch)
        try await world.devices[0].set("b", ["caption": .string("first"), "note": .string("note")])
        try await world.sync(0)
        try await world.sync(1)
        try await world.devices[0].set("b", ["caption": .string("second")])
        try await world.sync(0)
        try DamagedRows.flip(
            in: world.directory.appendingPathComponent("containers/\(TestCloud.container)/development/records.sqlite"),
            record: "b")
        // This device has an older version, and an edit.
        try await world.devices[1].set("b", ["note": .string("of B")])
        let report = try await world.sync(1)
        #expect(report.outbox.pending == 1)
        try await world.sync(0)
        try await world.syncAll()
        for device in world.devices { #expect(try texts(device) == ["b": ["caption": "second", "note": "of B"]]) }
    }
}
