import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: rows of formats without owners are all there after the migration, damaged ones included, and clients' tokens and tags of
/// them stay valid. Method: frozen archives, whose rows are counted and damaged; tokens as they were made then. FrozenFormatTests
/// has real devices.
@Suite(.timeLimit(.minutes(30))) struct OwnerMigrationTests {
    private let scratch: Scratch
    private var file: URL { scratch["cloud/containers/default/development/records.sqlite"] }

    init() throws { scratch = try Scratch() }

    private static let before = FrozenFormats.all.filter { [4, 5].contains($0.formats["cloud"]) }

    /// The rows of each table, by number.
    private func counts(_ db: Database) throws -> [String: Int] {
        let tables = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name")
        return try tables.reduce(into: [:]) { $0[$1] = try Int.fetchOne(db, sql: "SELECT count(*) FROM \($1)") ?? 0 }
    }

    @Test(arguments: before) func `all rows have their owners after the migration, and a damaged row stays damaged`(
        frozen: FrozenFormats
    ) async throws {
        try frozen.unpack(into: scratch)
        let (counted, change) = try DamagedRows.run(file) { db in
            // A flipped byte of a value, and one of a type: a strict table accepts no such value by itself.
            try db.execute(
                sql: """
                    CREATE TABLE loose AS SELECT * FROM records;
                    DROP TABLE records;
                    ALTER TABLE loose RENAME TO records;
                    UPDATE records SET fields = CAST(fields || x'00' AS BLOB) WHERE id = (SELECT min(id) FROM records);
                    UPDATE records SET fields = 'text' WHERE id = (SELECT max(id) FROM records WHERE is_deleted = 0);
                    """)
            return (try counts(db), try Int64.fetchOne(db, sql: "SELECT value FROM counters WHERE name = 'change'"))
        }
        let storage = try SQLiteCloudStorage(at: file)
        #expect(storage.commonChanges == change && storage.commonChanges > 0)
        let damaged = try await storage.read { rows throws(CloudError) in try rows.damagedRecords() }
        #expect(damaged.count == 2 && damaged.allSatisfy { $0.damage?.isNoted == false && $0.zone.owner.hasPrefix("_") })
        try DamagedRows.run(file) { db in
            let now = try counts(db)
            for (table, count) in counted where table != "zone_lives" { #expect(now[table] == count, "\(table)") }
            #expect(try String.fetchAll(db, sql: "PRAGMA integrity_check") == ["ok"])
            // Anna has the records; Ben, who takes part, has a row that points to them. The writers of the common numbers have no
            // owner.
            #expect(now["owners"] == 2 && now["shared_zones"] == 1)
            for table in now.keys where try db.columns(in: table).first?.name == "owner" && table != "writers" {
                let known = "SELECT count(*) FROM \(table) WHERE owner NOT IN (SELECT number FROM owners)"
                #expect(try Int.fetchOne(db, sql: known) == 0, "\(table)")
            }
            #expect(try Int.fetchOne(db, sql: "SELECT count(*) FROM writers WHERE owner <> 0") == 0)
        }
        let problems = try CloudVerification(of: scratch["cloud"]).run().problems
        #expect(problems.map(\.kind) == [.record, .record], "\(problems)")
    }

    @Test(arguments: before.filter { $0.formats["cloud"] == 5 })
    func `earlier tokens and tags stay valid, and one that is ahead of the rows shows a restored backup`(
        frozen: FrozenFormats
    ) async throws {
        try frozen.unpack(into: scratch)
        let cloud = try EmbeddedCloud(at: scratch["cloud"])
        let anna = try #require(try await cloud.account("anna@example.org"))
        let database = try cloud.database(.private, of: "default", account: anna.id)
        let (engine, zone) = (database.container.engine, CloudZoneID("TidemarkZone"))
        let common = engine.storage.commonChanges

        /// A token as the cloud made it at that time.
        func old(_ number: Int64, _ kind: String) async throws -> CloudToken {
            let caller = try await database.caller()
            return try await engine.storage.read { rows throws(CloudError) in
                let mark = kind == "d" ? CloudEngine.mark(caller) : try engine.access(to: zone, caller, rows).commonMark
                let place = engine.changeTagCipher.digest("\(Hexadecimal.text(try rows.incarnation().id)) \(mark)")
                let writer = try engine.writer(of: number, in: caller.user, rows)
                let text = "\(kind)5:\(place):\(engine.changeTagCipher.text(number)):\(writer)"
                let check = engine.changeTagCipher.digest("token " + text).prefix(20)
                return CloudToken(rawValue: Data("\(text):\(check)".utf8).base64EncodedString())
            }
        }

        let all = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        let (last, tag) = (
            try await old(common, "z"),
            try #require(
                all.changes.compactMap { change -> CloudRecord? in
                    if case .saved(let record) = change, record.type == "Note" { record } else { nil }
                }.first)
        )
        #expect(try await database.zoneChanges(zone, since: last, limit: nil, desiredKeys: nil).changes.isEmpty)
        #expect(try await database.databaseChanges(since: try await old(common, "d"), limit: nil).changed.isEmpty)
        let zones = try await database.databaseChanges(since: try await old(0, "d"), limit: nil).changed
        #expect(zones.map(\.zoneName).contains(zone.zoneName))
        // The tag of an earlier version is unchanged, and numbers continue from there.
        #expect(engine.changeTagCipher.number(try #require(tag.changeTag)) != nil)
        var edited = tag
        edited.fields = ["text": .string("edited")]
        let outcome = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(edited)]))[0]
        guard case .saved(let saved) = outcome else { throw CloudError(.internalError, "\(outcome)") }
        let new = try #require(saved.changeTag)
        #expect(engine.changeTagCipher.number(new) == nil && database.change(of: new) == common + 1)
        let changes = try await database.zoneChanges(zone, since: last, limit: nil, desiredKeys: nil)
        #expect(changes.changes.count == 1 && changes.incarnation == all.incarnation)

        // The rows are older than the token: they were restored from a backup before the migration.
        let ahead = try await old(common + 5, "z")
        for _ in 0..<2 {
            await #expect(throws: CloudError(.changeTokenExpired, "")) {
                try await database.zoneChanges(zone, since: ahead, limit: nil, desiredKeys: nil)
            }
        }
        let again = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        #expect(again.incarnation != all.incarnation)
        // With a tag of that time the client has to fetch everything each time, and no further incarnation begins.
        var lost = saved
        lost.changeTag = engine.changeTagCipher.text(common + 5)
        for _ in 0..<2 {
            let request = ModifyRecordsRequest(zone: zone, operations: [.save(lost)])
            await #expect(throws: CloudError(.changeTokenExpired, "")) { try await database.modify(request) }
        }
        let incarnation = try await database.zoneChanges(zone, since: again.token, limit: nil, desiredKeys: nil).incarnation
        #expect(incarnation == again.incarnation)
        // The owner's next change number is greater than all that were given out.
        lost.changeTag = new
        let next = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(lost)]))[0]
        guard case .saved(let beyond) = next, let number = beyond.changeTag.flatMap({ database.change(of: $0) }) else {
            throw CloudError(.internalError, "\(next)")
        }
        #expect(number > common + CloudEngine.leap)
    }
}
