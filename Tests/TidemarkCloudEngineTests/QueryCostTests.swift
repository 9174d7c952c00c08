import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: the cost of a query depends only on the records that the client may see, and is bounded. Method: instructions of
/// SQLite's virtual machine, the same on every machine, with and without records of other accounts; queries that read all
/// records.
@Suite(.timeLimit(.minutes(30))) struct QueryCostTests {
    private static let comparators: [(CloudQuery.Comparator, CloudValue)] = [
        (.equals, .string("n42")), (.notEquals, .string("n42")), (.lessThan, .string("n2")),
        (.greaterThanOrEquals, .string("n2")),
        (.beginsWith, .string("n4")), (.doesNotBeginWith, .string("n4")),
        (.isIn, .list([.string("n1"), .string("n9999")], of: .string)),
        (.isNotIn, .list([.string("n1"), .string("n9999")], of: .string)),
    ]

    private func indexed(_ query: CloudQuery, _ tenants: Tenants) async throws -> IndexQuery {
        let type = try #require(try await tenants.cloud.schema(of: Tenants.container).types["Note"])
        return try type.translate(query)
    }

    private func steps(
        _ query: IndexQuery, of database: EmbeddedDatabase, _ zone: CloudZoneID, _ tenants: Tenants
    ) async throws -> FoundRecords {
        let engine = try tenants.inner().engine
        let caller = try await database.caller()
        return try await engine.storage.read { rows throws(CloudError) in
            let access = try engine.access(to: zone, caller, rows)
            return try rows.find(query, in: access.zone.id, limit: 201, within: QueryBudget(steps: .max, time: .seconds(600)))
        }
    }

    @Test(arguments: [DatabaseScope.private, .public])
    func `private records of another account do not change the cost of a query`(scope: DatabaseScope) async throws {
        let tenants = try Tenants()
        let own = scope == .public ? try await tenants.database("anna", .public) : try await tenants.journal("anna")
        let zone = scope == .public ? CloudZoneID.default : Tenants.zone
        try await tenants.save(
            (0..<100).map { tenants.record("a\($0)", ["text": .string("n\($0)")], in: zone) }, to: own, zone: zone)
        try await tenants.cloud.setIndexes([.queryable, .sortable], of: "text", in: "Note", container: Tenants.container)
        try await tenants.cloud.setIndexes([.queryable], of: "recordName", in: "Note", container: Tenants.container)
        var queries = Self.comparators.map { CloudQuery(recordType: "Note", filters: [.init(.field("text"), $0, $1)]) }
        queries.append(CloudQuery(recordType: "Note", sorts: [.init(.field("text"))]))
        queries.append(CloudQuery(recordType: "Note"))
        let ben = try await tenants.journal("ben")
        let index = try #require(
            try await tenants.cloud.schema(of: Tenants.container).types["Note"]?.fields["text"]?.indexes)
        let (caller, engine) = (try await ben.caller(), try tenants.inner().engine)
        func save(_ numbers: Range<Int>) async throws {
            try await engine.storage.write(owners: [caller.user]) { rows throws(CloudError) in
                let zone = try engine.access(to: Tenants.zone, caller, rows).zone.id
                var records: [StoredCloudRecord] = []
                for number in numbers {
                    let text = "n\(number)"
                    records.append(
                        StoredCloudRecord(
                            zone: zone, name: "b\(number)", type: "Note", fields: FieldCoding.encode(["text": .string(text)]),
                            parent: nil,
                            changed: Int64(1_000_000 + number), created: .init(time: 1, userRecordName: caller.user),
                            modified: .init(time: 1, userRecordName: caller.user), isDeleted: false, dependsOn: [], assets: [],
                            indexed: [index[.queryable] ?? 0: [.text(text)], index[.sortable] ?? 0: [.text(text)]]))
                }
                try rows.save(records)
            }
        }
        // The end of a range is found at the entry behind it, which costs one instruction; so the other account always has an
        // entry.
        try await save(0..<1)
        var before: [Int64] = []
        for query in queries { before.append(try await steps(try await indexed(query, tenants), of: own, zone, tenants).steps) }
        try await save(1..<20_000)
        for (query, known) in zip(queries, before) {
            let after = try await steps(try await indexed(query, tenants), of: own, zone, tenants)
            #expect(after.steps == known, "\(query.filters.first?.comparator.rawValue ?? "no filter")")
            #expect(!after.rows.isEmpty)
        }
        // The other account's queries do see its records.
        let theirs = try await indexed(queries[4], tenants)
        #expect(try await steps(theirs, of: ben, Tenants.zone, tenants).rows.count == 201)
    }

    @Test func `a query of texts with a beginning reads these texts and no others`() async throws {
        for (text, end) in [
            ("a", "b"), ("az", "a{"), ("\u{d7ff}", "\u{e000}"), ("a\u{10ffff}", "b"), ("\u{10ffff}", nil), ("", nil), ("é", "ê"),
        ] as [(String, String?)] { #expect(IndexQuery.end(of: text) == end, "\(text)") }
        let tenants = try Tenants()
        let own = try await tenants.journal("anna")
        let texts = (0..<2_000).map { "b\($0)" } + ["a", "ab", "abc", "aé", "a\u{10ffff}", "a\u{10ffff}b", "A", "", "zz"]
        try await tenants.save(
            texts.enumerated().map { tenants.record("r\($0)", ["text": .string($1)]) }, to: own)
        try await tenants.cloud.setIndexes([.queryable], of: "text", in: "Note", container: Tenants.container)
        for prefix in ["a", "ab", "a\u{10ffff}", "", "b19", "é", "zz"] {
            let query = CloudQuery(recordType: "Note", filters: [.init(.field("text"), .beginsWith, .string(prefix))])
            let found = try await own.query(query, in: Tenants.zone, limit: 400, desiredKeys: nil, continuation: nil)
            var names = found.records.map { record -> String in
                guard case .string(let text)? = record.fields["text"] else { return "?" }
                return text
            }
            let wanted = texts.filter { $0.unicodeScalars.starts(with: prefix.unicodeScalars) }
            if prefix.isEmpty { names = Array(names.prefix(400)) }
            #expect(prefix.isEmpty ? names.count == 400 : names.sorted() == wanted.sorted(), "\(prefix)")
        }
        let few = CloudQuery(recordType: "Note", filters: [.init(.field("text"), .beginsWith, .string("ab"))])
        #expect(try await steps(try await indexed(few, tenants), of: own, Tenants.zone, tenants).steps < 300)
        // The same holds for a query by name.
        try await tenants.cloud.setIndexes([.queryable], of: "recordName", in: "Note", container: Tenants.container)
        let named = CloudQuery(recordType: "Note", filters: [.init(.recordName, .equals, .string("r7"))])
        #expect(try await steps(try await indexed(named, tenants), of: own, Tenants.zone, tenants).steps < 300)
    }

    @Test func `a query that costs too much ends, and an unsorted one goes on in the next page`() async throws {
        var limits = QueryLimits()
        limits.cost = 30_000
        let tenants = try Tenants(queries: limits)
        let own = try await tenants.journal("anna")
        let count = 6_000
        try await tenants.save((0..<count).map { tenants.record("r\($0)", ["text": .string("t\($0)")]) }, to: own)
        try await tenants.cloud.setIndexes([.queryable, .sortable], of: "text", in: "Note", container: Tenants.container)
        try await tenants.cloud.setIndexes([.queryable], of: "recordName", in: "Note", container: Tenants.container)
        // All records have to be sorted, because times have no index.
        let sorted = CloudQuery(recordType: "Note", sorts: [.init(.modified)])
        let error = await #expect(throws: CloudError.self) {
            try await own.query(sorted, in: Tenants.zone, limit: nil, desiredKeys: nil, continuation: nil)
        }
        #expect(error?.code == .limitExceeded)
        #expect(error?.reason.contains("filter by a field") == true)
        // Ten conditions that all records meet: each page is cut, and all pages together have all records.
        let filters = (0..<10).map { CloudQuery.Filter(.field("text"), .doesNotBeginWith, .string("x\($0)")) }
        let wide = CloudQuery(recordType: "Note", filters: filters)
        var (names, pages, continuation): ([String], Int, QueryContinuation?) = ([], 0, nil)
        repeat {
            let page = try await own.query(wide, in: Tenants.zone, limit: 400, desiredKeys: [], continuation: continuation)
            names += page.records.map(\.id.recordName)
            (pages, continuation) = (pages + 1, page.continuation)
        } while continuation != nil
        #expect(names.count == count && Set(names).count == count)
        #expect(names == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        #expect(pages > count / 400)
        // Time is limited as well.
        let engine = try tenants.inner().engine
        let caller = try await own.caller()
        let query = try await indexed(sorted, tenants)
        let cut = try await engine.storage.read { rows throws(CloudError) in
            let zone = try engine.access(to: Tenants.zone, caller, rows).zone.id
            return try rows.find(query, in: zone, limit: 10, within: QueryBudget(steps: .max, time: .zero))
        }
        #expect(cut.isCut && cut.rows.isEmpty)
    }

    @Test func `the instructions and time of a query are subtracted from its budget, down to 0`() {
        let budget = QueryBudget(steps: 100, time: .seconds(10), givesWay: true)
        let left = budget.without(steps: 30, time: .seconds(4))
        #expect(left.steps == 70 && left.time == .seconds(6) && left.givesWay)
        let nothing = budget.without(steps: 101, time: .seconds(11))
        #expect(nothing.steps == 0 && nothing.time == .zero)
        #expect(budget.half.steps == 50 && budget.half.time == .seconds(5))
    }
}
