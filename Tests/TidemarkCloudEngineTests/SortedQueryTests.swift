import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a sorted query gives the same records by every plan, and any page costs little, also the hundredth. Method: pages
/// compared with Swift's sorting, with a walk of the index and without; instructions of SQLite's virtual machine; SQLite's plans.
@Suite(.timeLimit(.minutes(30))) struct SortedQueryTests {
    @Test(arguments: [1, 50, 5_000])
    func `the pages of sorted queries are the sorted records, in SQLite`(frequent: Int) async throws {
        try await SortedQueries(frequent: frequent).run()
    }

    private static let count = 20_000

    /// A journal with many records: each tenth has no number.
    private func journal() async throws -> (tenants: Tenants, database: EmbeddedDatabase) {
        let tenants = try Tenants()
        let database = try await tenants.journal("anna")
        let first = tenants.record("a", ["n": .int64(-1), "k": .int64(1)])
        try await tenants.save([first], to: database)
        for field in ["n", "k"] {
            try await tenants.cloud.setIndexes([.queryable, .sortable], of: field, in: "Note", container: Tenants.container)
        }
        try await tenants.cloud.setIndexes([.queryable], of: "recordName", in: "Note", container: Tenants.container)
        let schema = try await tenants.cloud.schema(of: Tenants.container)
        let (caller, engine) = (try await database.caller(), try tenants.inner().engine)
        try await engine.storage.write(owners: [caller.user]) { rows throws(CloudError) in
            let zone = try engine.access(to: Tenants.zone, caller, rows).zone.id
            var records: [StoredCloudRecord] = []
            for number in 0..<Self.count {
                var fields: [String: CloudValue] = ["k": .int64(Int64(number % 4))]
                if number % 10 != 0 { fields["n"] = .int64(Int64(number * 7_919 % Self.count)) }
                let name = "b\(number)"
                records.append(
                    StoredCloudRecord(
                        zone: zone, name: name, type: "Note", fields: FieldCoding.encode(fields), parent: nil,
                        changed: Int64(1_000_000 + number), created: .init(time: 1, userRecordName: caller.user),
                        modified: .init(time: 1, userRecordName: caller.user), isDeleted: false, dependsOn: [], assets: [],
                        indexed: schema.indexed(fields, type: "Note", name: name)))
            }
            try rows.save(records)
        }
        return (tenants, database)
    }

    @Test func `the hundredth page of a sorted query costs as little as the first`() async throws {
        let (tenants, database) = try await journal()
        let (engine, caller) = (try tenants.inner().engine, try await database.caller())
        let type = try #require(try await tenants.cloud.schema(of: Tenants.container).types["Note"])
        let n = CloudQuery.Key.field("n")
        let wide = CloudQuery.Filter(.field("k"), .notEquals, .int64(0))
        let queries = [
            CloudQuery(recordType: "Note", sorts: [.init(n)]),
            CloudQuery(recordType: "Note", sorts: [.init(n, isAscending: false)]),
            CloudQuery(recordType: "Note", filters: [wide], sorts: [.init(n)]),
            CloudQuery(recordType: "Note", sorts: [.init(n), .init(.field("k"))]),
        ]
        for query in queries {
            var indexed = try type.translate(query)
            for page in 1...100 {
                let asked = indexed
                let found = try await engine.storage.read { rows throws(CloudError) in
                    let access = try engine.access(to: Tenants.zone, caller, rows)
                    let budget = QueryBudget(steps: .max, time: .seconds(600))
                    return try rows.find(asked, in: access.zone.id, limit: 50, within: budget)
                }
                #expect(found.rows.count == 50 && !found.isCut)
                // With two orders, all records without a first value are sorted by the second.
                let isAmongThem = asked.after.map { $0.values[0] == nil } ?? false
                let sortsThem = query.sorts.count == 2 && (isAmongThem || found.rows.contains { $0.keys[0] == nil })
                let most: Int64 = sortsThem ? 500_000 : 20_000
                #expect(found.steps < most, "page \(page) of \(query.sorts): \(found.steps)")
                guard let last = found.rows.last else { break }
                indexed.after = .init(values: last.keys, name: last.record.name)
            }
        }
        // A walk with a range begins at the range's bound.
        let range = CloudQuery(recordType: "Note", filters: [.init(n, .greaterThan, .int64(12_000))], sorts: [.init(n)])
        let asked = try type.translate(range)
        #expect(asked.order[0].bounds.count == 1)
        let found = try await engine.storage.read { rows throws(CloudError) in
            let access = try engine.access(to: Tenants.zone, caller, rows)
            return try rows.find(asked, in: access.zone.id, limit: 50, within: QueryBudget(steps: .max, time: .seconds(600)))
        }
        // The steps include counting the records that meet the condition.
        #expect(found.rows.count == 50 && found.steps < 100_000, "\(found.steps)")
    }

    @Test func `filters by the field of the order bound the walk on both sides`() async throws {
        let (tenants, _) = try await journal()
        let type = try #require(try await tenants.cloud.schema(of: Tenants.container).types["Note"])
        let n = CloudQuery.Key.field("n")
        func bounds(_ comparator: CloudQuery.Comparator, _ value: CloudValue) throws -> [IndexQuery.Bound] {
            let query = CloudQuery(recordType: "Note", filters: [.init(n, comparator, value)], sorts: [.init(n)])
            return try type.translate(query).order[0].bounds
        }
        func range(_ least: IndexValue, _ end: IndexQuery.Comparison, _ greatest: IndexValue) -> [IndexQuery.Bound] {
            [.init(comparison: .greaterOrEqual, value: least), .init(comparison: end, value: greatest)]
        }
        #expect(try bounds(.beginsWith, .string("ab")) == range(.text("ab"), .less, .text("ac")))
        // There is no text behind all texts that begin so.
        #expect(try bounds(.beginsWith, .string("\u{10ffff}")).count == 1)
        let numbers = CloudValue.list([.int64(7), .int64(-2), .int64(3)], of: .int64)
        #expect(try bounds(.isIn, numbers) == range(.integer(-2), .lessOrEqual, .integer(7)))
        let texts = CloudValue.list([.string("b"), .string("é"), .string("a")], of: .string)
        #expect(try bounds(.isIn, texts) == range(.text("a"), .lessOrEqual, .text("é")))
        #expect(try bounds(.isNotIn, numbers) == [])
    }

    @Test func `a damaged record sorts among those without a value`() async throws {
        let tenants = try Tenants()
        let database = try await tenants.journal("anna")
        let records = [tenants.record("a", ["n": .int64(1)]), tenants.record("b", ["n": .int64(2)])]
        try await tenants.save(records, to: database)
        try DamagedRows.run(tenants.file) { db in
            try db.execute(sql: "UPDATE records SET fields = x'ff' WHERE name = 'a'")
            #expect(db.changesCount == 1)
        }
        try await tenants.cloud.setIndexes([.queryable, .sortable], of: "n", in: "Note", container: Tenants.container)
        let count = try DamagedRows.run(tenants.file) { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM found WHERE idx < 0")
        }
        #expect(count == 1)
    }

    /// Format 7 adds rows that format 6 lacks, and nothing else.
    @Test func `records without a value get their rows when a cloud of format 6 is opened`() async throws {
        let scratch = try Scratch()
        let file = try await makeNotes(scratch)
        let sql = "SELECT * FROM found ORDER BY owner, zone, idx, value, record, ordinal"
        func rows() throws -> [String] { try DamagedRows.run(file) { db in try Row.fetchAll(db, sql: sql).map { "\($0)" } } }
        let wanted = try rows()
        try DamagedRows.run(file) { db in
            try db.execute(sql: "DELETE FROM found WHERE idx < 0")
            #expect(db.changesCount == 5)
            try db.execute(sql: "PRAGMA user_version = 6")
        }
        _ = try SQLiteCloudStorage(at: file)
        #expect(try rows() == wanted)
        #expect(try DamagedRows.run(file) { db in try Int.fetchOne(db, sql: "PRAGMA user_version") } == 7)
    }

    /// Notes without five values of sortable fields: one of `b`, which was changed, two of `d` and two of `e`. `a` is deleted.
    private func makeNotes(_ scratch: Scratch) async throws -> URL {
        let tenants = try Tenants(scratch)
        let database = try await tenants.journal("anna")
        try await tenants.save(
            [
                tenants.record("a", ["n": .int64(1), "s": .string("x")]), tenants.record("b", ["n": .int64(2)]),
                tenants.record("c", ["s": .string("y")]), tenants.record("d"), tenants.record("e"),
                tenants.record("f", ["n": .int64(2)], type: "Other"),
            ], to: database)
        for field in ["n", "s"] {
            try await tenants.cloud.setIndexes([.queryable, .sortable], of: field, in: "Note", container: Tenants.container)
        }
        try await tenants.save([tenants.record("b", ["s": .string("z")])], to: database)
        _ = try await tenants.outcome(RecordOperation(.forceDelete, tenants.record("a")), database)
        // The record gets its missing value.
        try await tenants.save([tenants.record("c", ["n": .int64(3), "s": .string("y")])], to: database)
        return tenants.file
    }

    @Test func `a walk sorts only records with equal values, and never looks at all records`() async throws {
        let scratch = try Scratch()
        _ = try SQLiteCloudStorage(at: scratch["records.sqlite"])
        let queue = try DatabaseQueue(path: scratch["records.sqlite"].path)
        let place = IndexQuery.Place(values: [.integer(5)], name: "b")
        for isAscending in [true, false] {
            for after in [nil, place] {
                for part in [IndexQuery.WalkedPart.values, .withoutValue] {
                    let query = IndexQuery(
                        type: "Note", conditions: [], order: [.init(key: .index(2), isAscending: isAscending)], after: after)
                    var builder = QueryBuilder(isFrequent: true)
                    let sql = builder.walk(query, along: 2, part, zone: .init(owner: 1, number: 1), limit: 50)
                    let arguments = builder.arguments
                    let plan = try await queue.read { db in
                        let steps = try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN " + sql, arguments: arguments)
                        return steps.map { $0["detail"] as String }
                    }
                    let walks = "SEARCH f USING PRIMARY KEY (owner=? AND zone=? AND idx=?"
                    #expect(plan.contains { $0.hasPrefix(walks) }, "\(plan)")
                    #expect(!plan.contains { $0.hasPrefix("SCAN") || $0 == "USE TEMP B-TREE FOR ORDER BY" }, "\(plan)")
                }
            }
        }
        try queue.close()
    }
}
