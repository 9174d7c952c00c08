import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: damage in a cloud's database is reported as damage, and no client gets damaged values. Method: bits of rows are changed
/// beside the cloud, which is then read in all ways, and verified.
@Suite(.timeLimit(.minutes(30))) struct CloudDamageTests {
    private let scratch = try! Scratch()
    private let container = "iCloud.org.example.journal"
    private let zone = CloudZoneID("Journal")

    private var file: URL { scratch["cloud/containers/\(container)/development/records.sqlite"] }

    private func owner() async throws -> (EmbeddedCloud, EmbeddedDatabase) {
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let account = try await cloud.addAccount("anna@example.org").id
        let owner = try cloud.database(.private, of: container, account: account)
        try await owner.modifyZones(saving: [zone], deleting: [])
        return (cloud, owner)
    }

    private func record(_ name: String, tag: String? = nil, parent: String? = nil) -> CloudRecord {
        var record = CloudRecord(
            CloudRecordID(name, in: zone), type: "Note", fields: ["text": .string("the text of \(name)"), "n": .int64(7)],
            changeTag: tag)
        record.parent = parent
        return record
    }

    @discardableResult
    private func save(_ operation: RecordOperation, _ database: EmbeddedDatabase) async throws -> RecordOutcome {
        try await database.modify(ModifyRecordsRequest(zone: zone, operations: [operation]))[0]
    }

    private func error(_ outcome: RecordOutcome) -> CloudError.Code? {
        if case .failed(let error) = outcome { error.code } else { nil }
    }

    @Test func `records of all sizes are read as they were written, and none with its last byte changed`() async throws {
        let (_, owner) = try await owner()
        let sizes = Array(0...3) + Array(880...1_040) + [2_047, 2_048, 5_000, 100_000]
        for size in sizes {
            var record = record("r\(size)", parent: size % 2 == 0 ? nil : "r0")
            record.fields["text"] = .string(String(repeating: "é", count: size / 2) + (size % 2 == 0 ? "" : "x"))
            try await save(RecordOperation(.create, record), owner)
        }
        let names = sizes.map { "r\($0)" }
        for (size, found) in zip(sizes, try await owner.lookup(names, in: zone, desiredKeys: nil)) {
            #expect(try found.get().fields["text"]?.byteCount == CloudValue.string(String(repeating: "x", count: size)).byteCount)
        }
        try DamagedRows.run(file) { db in
            try db.execute(
                sql: "UPDATE records SET fields = CAST(substr(fields, 1, length(fields) - 1) || x'01' AS BLOB)")
        }
        for found in try await owner.lookup(names, in: zone, desiredKeys: nil) {
            #expect(throws: CloudError(.recordDamaged, "")) { try found.get() }
        }
    }

    @Test
    func `if any value of a record's row is changed, no client gets the record, and all others are returned`() async throws {
        let (_, owner) = try await owner()
        for name in ["a", "b", "c"] { try await save(RecordOperation(.create, record(name)), owner) }
        let changes = [
            "fields = CAST(substr(fields, 1, length(fields) - 1) || x'09' AS BLOB)", "type = 'Nota'", "created = created + 1",
            "created_by = '_x'", "modified = modified - 1", "modified_by = 'z'", "parent = 'c'", "digest = zeroblob(16)",
            "fields = x''", "is_deleted = 1", "changed = changed + 1000",
        ]
        for change in changes {
            try DamagedRows.run(file) { db in
                try db.execute(sql: "CREATE TABLE saved AS SELECT * FROM records WHERE name = 'b'")
                try db.execute(sql: "UPDATE records SET \(change) WHERE name = 'b'")
            }
            let found = try await owner.lookup(["a", "b", "c"], in: zone, desiredKeys: nil)
            #expect((try? found[0].get()) != nil && (try? found[2].get()) != nil)
            #expect(throws: CloudError(.recordDamaged, ""), "\(change)") { try found[1].get() }
            let page = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
            #expect(page.changes.count == 2 && page.failed.map(\.id.recordName) == ["b"], "\(change)")
            #expect(page.failed.map(\.error.code) == [.recordDamaged])
            let report = try CloudVerification(of: scratch["cloud"]).run()
            #expect(
                report.problems.contains { $0.kind == .record && $0.message.contains("'b' of the zone 'Journal'") }, "\(change)")
            try DamagedRows.run(file) { db in
                try db.execute(sql: "INSERT OR REPLACE INTO records SELECT * FROM saved; DROP TABLE saved")
            }
        }
        #expect(try CloudVerification(of: scratch["cloud"]).run().problems == [])
    }

    @Test func `a damaged record can only be replaced as a whole, under its tag`() async throws {
        let (cloud, owner) = try await owner()
        guard case .saved(let saved) = try await save(RecordOperation(.create, record("a")), owner) else { return }
        let token = try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).token
        try DamagedRows.flip(in: file, record: "a")
        #expect(try await cloud.reportDamage() == 1)
        #expect(try await cloud.reportDamage() == 0)
        // A client that had the record learns of the damage, with the tag of the earlier version.
        let page = try await owner.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
        #expect(page.failed.map(\.changeTag) == [saved.changeTag] && page.changes.isEmpty)

        for operation in [
            RecordOperation(.create, record("a")), RecordOperation(.update, record("a", tag: saved.changeTag)),
            RecordOperation(.forceUpdate, record("a")), RecordOperation(.replace, record("a", tag: "other")),
            RecordOperation(.delete, record("a", tag: "other")),
        ] {
            #expect(error(try await save(operation, owner)) == .recordDamaged, "\(operation.kind)")
        }
        guard case .saved(let mended) = try await save(RecordOperation(.replace, record("a", tag: saved.changeTag)), owner) else {
            Issue.record("it was not taken")
            return
        }
        #expect(mended.fields == saved.fields && mended.changeTag != saved.changeTag)
        let then = try await owner.zoneChanges(zone, since: page.token, limit: nil, desiredKeys: nil)
        #expect(then.changes == [.saved(mended)] && then.failed.isEmpty)
        #expect(try CloudVerification(of: scratch["cloud"]).run().problems == [])
        try DamagedRows.flip(in: file, record: "a")
        #expect(error(try await save(RecordOperation(.forceDelete, record("a")), owner)) == nil)
        #expect(try CloudVerification(of: scratch["cloud"]).run().problems == [])
    }

    @Test func `a change of another record does not give a new digest to a damaged one`() async throws {
        let (_, owner) = try await owner()
        try await save(RecordOperation(.create, record("top")), owner)
        try await save(RecordOperation(.create, record("below", parent: "top")), owner)
        try DamagedRows.flip(in: file, record: "below")
        try await save(.delete(CloudRecordID("top", in: zone)), owner)
        let found = try await owner.lookup(["below"], in: zone, desiredKeys: nil)
        #expect(throws: CloudError(.recordDamaged, "")) { try found[0].get() }
    }

    @Test(arguments: [DatabaseScope.public, .private])
    func `an account is removed with its damaged records, and nothing of another account`(scope: DatabaseScope) async throws {
        let (cloud, _) = try await owner()
        let ben = try await cloud.addAccount("ben@example.org").id
        let anna = try #require(try await cloud.account("anna@example.org"))
        func saved(_ name: String, by account: String) async throws -> EmbeddedDatabase {
            let database = try cloud.database(scope, of: container, account: account)
            let record = CloudRecord(CloudRecordID(name, in: .default), type: "Note", fields: ["text": .string(name)])
            let outcome = try await database.modify(
                ModifyRecordsRequest(zone: .default, operations: [RecordOperation(.create, record)], clientToken: name))[0]
            #expect(error(outcome) == nil)
            return database
        }
        for name in ["a", "b", "c"] { _ = try await saved(name, by: anna.id) }
        let theirs = try await saved("of Ben", by: ben)
        try DamagedRows.flip(in: file, record: "b")
        let removed = try await cloud.removeWithData(anna)
        #expect(removed.records == 3)
        let left = try await DatabaseQueue(path: file.path).read { db in
            try String.fetchAll(db, sql: "SELECT name FROM records WHERE is_deleted = 0 OR length(fields) > 0")
        }
        #expect(left == ["of Ben"])
        // Stored answers name records, too.
        let answers = try await DatabaseQueue(path: file.path).read { db in
            try String.fetchAll(db, sql: "SELECT token FROM answers")
        }
        #expect(answers == ["of Ben"])
        let whole = try await theirs.lookup(["of Ben"], in: .default, desiredKeys: nil)
        #expect(try whole[0].get().fields == ["text": .string("of Ben")])
    }

    @Test func `a damaged share, participant or zone is reported, and others can still be used`() async throws {
        let (cloud, owner) = try await owner()
        let other = CloudZoneID("Other")
        try await owner.modifyZones(saving: [other], deleting: [])
        let ben = try await cloud.addAccount("ben@example.org").id
        let theirs = try cloud.database(.shared, of: container, account: ben)
        for zone in [zone, other] {
            let share = try await owner.createShare(in: zone, coverage: .zone, title: "t", publicPermission: .none)
            _ = try await owner.changeShare(
                share.id, [.invite(.emailAddress("ben@example.org"), role: .privateUser, permission: .readWrite)])
            let link = try await owner.makeLink(to: share.id, for: nil)
            _ = try await theirs.acceptLink(link.token)
        }
        #expect(try await theirs.zones().count == 2)
        let sql = "SELECT ordinal FROM participants WHERE role <> 1 ORDER BY ordinal LIMIT 1"
        try DamagedRows.run(file) { db in
            let row = try Int64.fetchOne(db, sql: sql)
            try db.execute(sql: "UPDATE participants SET permission = 2 WHERE ordinal = ?", arguments: [row])
        }
        #expect(try await theirs.zones().map(\.zoneName) == ["Other"])
        try DamagedRows.run(file) { db in try db.execute(sql: "UPDATE shares SET title = 'u' WHERE id = 1") }
        try DamagedRows.run(file) { db in try db.execute(sql: "UPDATE zones SET sharing = 0 WHERE name = 'Journal'") }
        #expect(try await theirs.zones().map(\.zoneName) == ["Other"])
        await #expect(throws: CloudError(.recordDamaged, "")) {
            try await owner.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        }
        #expect(try await owner.zoneChanges(other, since: nil, limit: nil, desiredKeys: nil).failed == [])
        // Lists still work, and changes of the damaged zone are refused.
        let listed = try await owner.zonesWithTokens()
        #expect(listed.filter { $0.token != nil }.map(\.zone.zoneName) == ["Other"] && listed.count == 3)
        #expect(try await owner.databaseChanges(since: nil, limit: nil).changed.count == 2)
        #expect(
            error(
                try await owner.modify(
                    ModifyRecordsRequest(
                        zone: other, operations: [.save(CloudRecord(CloudRecordID("x", in: other), type: "Note", fields: [:]))]))[
                        0]) == nil)
        await #expect(throws: CloudError(.recordDamaged, "")) { try await save(RecordOperation(.create, record("a")), owner) }
        await #expect(throws: CloudError(.recordDamaged, "")) { try await owner.modifyZones(saving: [], deleting: [zone]) }
        let kinds = Set(try CloudVerification(of: scratch["cloud"]).run().problems.map(\.kind))
        #expect(kinds == [.participant, .share, .zone])
    }

    @Test func `a damaged share is named when a person's data are listed, and its zone stays shared when another share ends`()
        async throws
    {
        let (cloud, owner) = try await owner()
        for name in ["a", "b"] { try await save(RecordOperation(.create, record(name)), owner) }
        var shares: [CloudShare] = []
        for name in ["a", "b"] {
            shares.append(
                try await owner.createShare(in: zone, coverage: .hierarchy(root: name), title: name, publicPermission: .none))
        }
        try DamagedRows.run(file) { db in try db.execute(sql: "UPDATE shares SET title = 'u' WHERE title = 'a'") }
        let (titles, reasons) = (Shared<[String?]>([]), Shared<[String]>([]))
        let account = try #require(try await cloud.account("anna@example.org"))
        try await cloud.forEachItem(of: account) { _, item in
            switch item {
            case .share(let share): titles.change { $0.append(share.title) }
            case .damaged(let error): reasons.change { $0.append(error.reason) }
            case .record: break
            }
        }
        let (whole, damaged) = (titles.value, reasons.value)
        #expect(whole == ["b"] && damaged.count == 1)
        #expect(damaged.first?.contains("the share '\(shares[0].id.recordName)' is damaged") == true, "\(damaged)")
        try await owner.deleteShare(shares[1].id)
        try DamagedRows.run(file) { db in
            let sharing = try Int.fetchOne(db, sql: "SELECT sharing FROM zones WHERE name = 'Journal'")
            #expect(sharing == 2)
        }
    }

    @Test func `missing and wrong assets, and references without a target, are found`() async throws {
        let (_, owner) = try await owner()
        let contents = ["one", "two", "three"].map { Data($0.utf8) }
        for (index, content) in contents.enumerated() {
            let asset = AssetDigest.asset(of: content)
            _ = try await owner.upload(content, of: asset, at: 0, in: zone)
            let picture = CloudRecord(CloudRecordID("p\(index)", in: zone), type: "Picture", fields: ["image": .asset(asset)])
            try await save(RecordOperation(.create, picture), owner)
        }
        let user = try #require(try await owner.account().userRecordName)
        func place(_ index: Int) -> URL {
            let digest = AssetDigest.asset(of: contents[index]).digest
            return scratch["cloud/containers/\(container)/development/\(CloudDirectory.asset(digest, owner: user))"]
        }
        #expect(try CloudVerification(of: scratch["cloud"]).run().assets == 3)
        try FileManager.default.removeItem(at: place(0))
        try Data("twO".utf8).write(to: place(1))
        try DamagedRows.run(file) { db in
            try db.execute(sql: "DELETE FROM assets WHERE digest = ?", arguments: [AssetDigest.asset(of: contents[2]).digest])
        }
        let problems = try CloudVerification(of: scratch["cloud"]).run().problems
        #expect(problems.map(\.kind).sorted { $0.rawValue < $1.rawValue } == [.asset, .asset, .reference])
        #expect(
            problems.contains { $0.message.hasSuffix("is missing") } && problems.contains { $0.message.hasSuffix("is damaged") })
    }
}
