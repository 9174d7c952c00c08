import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: PostgreSQL walks the index of an order, which has also records without a value, and those of older databases. Method:
/// the plans of PostgreSQL, and a database that is set back to an older version.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresWalkTests {
    private static let count = 6_000

    private static func record(_ number: Int, in zone: StoredZone.ID) -> StoredCloudRecord {
        let (name, stamp) = ("r\(100_000 + number)", CloudRecord.Stamp(time: 1, userRecordName: "_anna"))
        var indexed: [Int64: [IndexValue]] = [3: [.integer(Int64(number % 5))]]
        if number % 10 == 0 { indexed[-2] = [.text(name)] } else { indexed[2] = [.integer(Int64(number * 7_919 % count))] }
        return StoredCloudRecord(
            zone: zone, name: name, type: "Note", fields: Data([1, 2, 3]), parent: nil, changed: Int64(number) + 1,
            created: stamp, modified: stamp, isDeleted: false, dependsOn: [], assets: [], indexed: indexed)
    }

    private func fill(_ storage: PostgresCloudStorage) async throws -> StoredZone.ID {
        let zone = try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save(StoredZone(place: .init(scope: .private, owner: "_anna", name: "Zone"), made: 0, changed: 0)).id
        }
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save((0..<Self.count).map { Self.record($0, in: zone) })
            try rows.setLastChange(Int64(Self.count), of: "_anna")
        }
        return zone
    }

    @Test(arguments: [true, false])
    func `a page comes from an index and an incremental sort`(isAscending: Bool) async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await fill(storage)
        try await records.fixture.sql("ANALYZE")
        var query = IndexQuery(type: "Note", conditions: [], order: [.init(key: .index(2), isAscending: isAscending)])
        query.after = .init(values: [.integer(3_000)], name: "r1")
        var builder = PostgresQueryBuilder(container: storage.context.container, zone: zone)
        let sql = builder.walk(query, along: 2, .values, columns: PostgresCloudTransaction.recordColumns, limit: 50)
        let command = PostgresCommand("EXPLAIN " + sql, builder.parameters)
        let lines = try await records.fixture.database.read { transaction in
            try transaction.query(command).map { try $0.value(0, as: String.self) }
        }
        let plan = lines.joined(separator: "\n")
        #expect(plan.contains("Incremental Sort") && plan.contains("tidemark_found_by_value"), "\(plan)")
        #expect(!plan.contains("Seq Scan"), "\(plan)")
        await records.fixture.database.close()
    }

    @Test func `without statistics, what a walk looks up for a record is not read from the index of values`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await fill(storage)
        let conditions: [IndexQuery.Condition] = [
            .compare(.index(3), .equal, .integer(1)), .not(.compare(.index(3), .greater, .integer(3))),
        ]
        let order: [IndexQuery.Order] = [.init(key: .index(2), isAscending: true), .init(key: .index(3), isAscending: true)]
        let query = IndexQuery(type: "Note", conditions: conditions, order: order)
        for (part, most) in [(IndexQuery.WalkedPart.values, 1), (.withoutValue, 0)] {
            var builder = PostgresQueryBuilder(container: storage.context.container, zone: zone)
            let sql = builder.walk(query, along: 2, part, columns: PostgresCloudTransaction.recordColumns, limit: 50)
            let command = PostgresCommand("EXPLAIN " + sql, builder.parameters)
            let lines = try await records.fixture.database.read { transaction in
                try transaction.query(command).map { try $0.value(0, as: String.self) }
            }
            let byValue = lines.filter { $0.contains("tidemark_found_by_value") }
            #expect(byValue.count <= most, "\(lines.joined(separator: "\n"))")
            #expect(!lines.contains { $0.contains("tidemark_records_by_type") }, "\(lines.joined(separator: "\n"))")
        }
        await records.fixture.database.close()
    }

    @Test func `all pages together have each record once, in order`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await fill(storage)
        var query = IndexQuery(type: "Note", conditions: [], order: [.init(key: .index(2), isAscending: true)])
        var names: [String] = []
        while true {
            let asked = query
            let page = try await storage.read { rows throws(CloudError) in
                try rows.find(asked, in: zone, limit: 1_000, within: QueryBudget(steps: .max, time: .seconds(30)))
            }
            names += page.rows.map(\.record.name)
            guard let last = page.rows.last else { break }
            query.after = .init(values: last.keys, name: last.record.name)
        }
        let all = (0..<Self.count).map { Self.record($0, in: zone) }
        let without = all.filter { $0.indexed[2] == nil }.map(\.name)
        let with = all.filter { $0.indexed[2] != nil }.sorted { one, other in
            guard case .integer(let first)? = one.indexed[2]?.first, case .integer(let second)? = other.indexed[2]?.first else {
                return false
            }
            return (first, one.name) < (second, other.name)
        }
        #expect(names == without + with.map(\.name))
        await records.fixture.database.close()
    }

    @Test func `records without a value get their rows when a database of version 2 is migrated`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            var schema = CloudSchema()
            var number = CloudSchema.Field(type: "int64")
            number.indexes = [.queryable: 1, .sortable: 2]
            var note = CloudSchema.RecordType()
            note.fields = ["n": number, "plain": CloudSchema.Field(type: "int64")]
            schema.types["Note"] = note
            schema.nextIndex = 4
            try rows.save(schema)
            return try rows.save(
                StoredZone(place: .init(scope: .private, owner: "_anna", name: "Zone"), made: 0, changed: 0)
            ).id
        }
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            var some = (0..<100).map { Self.record($0, in: zone) }
            // A tombstone, and a record of a type without an index.
            some[10].isDeleted = true
            some[10].indexed = [:]
            some[20].type = "Other"
            some[20].indexed = [:]
            try rows.save(some)
            try rows.setLastChange(100, of: "_anna")
        }
        let database = records.fixture.database
        func rows() async throws -> [String] {
            let sql = "SELECT name, idx, value FROM tidemark_found WHERE idx < 0 ORDER BY name"
            return try await database.read { transaction in
                try transaction.query(sql).map { row in
                    "\(try row.text(0)) \(try row.value(1, as: Int64.self)) \(Array(try row.value(2, as: Data.self)))"
                }
            }
        }
        let wanted = try await rows()
        #expect(wanted.count == 8)
        try await records.fixture.sql(
            """
            DELETE FROM tidemark_found WHERE idx < 0;
            DROP INDEX tidemark_found_without_value;
            DROP TABLE tidemark_asset_place;
            DELETE FROM tidemark_migrations WHERE component = 'records' AND number >= 3
            """)
        // Damaged schemas keep no other container from its rows. Their contents are no UTF-8, no JSON, indexes that are no array,
        // and a number of an index that is no number.
        try await records.fixture.sql(
            """
            INSERT INTO tidemark_schemas (container, version, content) VALUES
                (9001, 1, decode('ff', 'hex')), (9002, 1, convert_to('{', 'UTF8')),
                (9003, 1, convert_to('{"types": {"T": {"fields": {"n": {"indexes": {"sortable": 1}}}}}}', 'UTF8')),
                (9004, 1, convert_to('{"types": {"T": {"fields": {"n": {"indexes": ["sortable", "x"]}}}}}', 'UTF8'))
            """)
        try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
        #expect(try await rows() == wanted)
        await database.close()
    }
}
