import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Compares sorted queries of a cloud over any storage with Swift's sorting: their pages together must be the sorted rows,
/// whether the storage sorts or walks an index.
package struct SortedQueries {
    private static let container = "iCloud.org.example.journal"
    private static let zone = CloudZoneID("Journal")
    private static let pageSize = 17
    private let scratch: Scratch
    private let database: EmbeddedDatabase
    private let cloud: EmbeddedCloud

    private struct Row {
        let name: String
        var n, m: Int64?
        var tags: [String]
    }

    /// An order of rows by one of the two numbers.
    private struct Order {
        let field: String
        let isAscending: Bool

        func value(_ row: Row) -> Int64? { field == "n" ? row.n : row.m }

        var sort: CloudQuery.Sort { CloudQuery.Sort(.field(field), isAscending: isAscending) }
    }

    /// A filter, and a test of the rows that meet it.
    private struct Filter {
        let name: String
        let filters: [CloudQuery.Filter]
        let test: @Sendable (Row) -> Bool
    }

    /// - Parameters:
    ///   - frequent: From so many records on, the storage walks an index.
    ///   - storage: Makes the storage of a container's rows; `nil` for files.
    package init(frequent: Int, storage: EmbeddedCloud.StorageOfContainer? = nil) async throws {
        var limits = QueryLimits()
        limits.frequent = frequent
        scratch = try Scratch()
        cloud = try EmbeddedCloud(
            at: scratch["cloud"], queries: limits, now: { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) },
            storage: storage)
        let account = try await cloud.addAccount("anna@example.org")
        database = try cloud.database(.private, of: Self.container, account: account.id)
        try await database.modifyZones(saving: [Self.zone], deleting: [])
    }

    private func modify(_ operations: [RecordOperation]) async throws {
        for begin in stride(from: 0, to: operations.count, by: 400) {
            let some = Array(operations[begin..<min(begin + 400, operations.count)])
            for outcome in try await database.modify(ModifyRecordsRequest(zone: Self.zone, operations: some)) {
                if case .failed(let error) = outcome { throw error }
            }
        }
    }

    private func record(_ row: Row) -> CloudRecord {
        var fields: [String: CloudValue] = ["tags": .list(row.tags.map { CloudValue.string($0) }, of: .string)]
        if let n = row.n { fields["n"] = .int64(n) }
        if let m = row.m { fields["m"] = .int64(m) }
        return CloudRecord(CloudRecordID(row.name, in: Self.zone), type: "Note", fields: fields)
    }

    private func index(_ indexes: Set<CloudSchema.Index>, _ field: String) async throws {
        try await cloud.setIndexes(indexes, of: field, in: "Note", container: Self.container)
    }

    private static func rows(_ count: Int) -> [Row] {
        (0..<count).map { number in
            // The rows are not in the order of their names; many share a value, and some have none.
            let place = number * 7_919 % count
            return Row(
                name: "r\(100_000 + place)", n: number % 7 == 0 ? nil : Int64(number % 40 - 20),
                m: number % 11 == 0 ? nil : Int64(place), tags: number % 3 == 0 ? ["a", "b"] : number % 50 == 1 ? ["c"] : [])
        }
    }

    private static let filters: [Filter] = [
        Filter(name: "none", filters: []) { _ in true },
        Filter(name: "wide", filters: [.init(.field("tags"), .listDoesNotContain, .string("c"))]) { !$0.tags.contains("c") },
        Filter(name: "a third", filters: [.init(.field("tags"), .listContains, .string("a"))]) { $0.tags.contains("a") },
        Filter(name: "narrow", filters: [.init(.field("tags"), .listContains, .string("c"))]) { $0.tags.contains("c") },
        Filter(name: "nothing", filters: [.init(.field("tags"), .listContains, .string("x"))]) { _ in false },
        Filter(name: "n > 3", filters: [.init(.field("n"), .greaterThan, .int64(3))]) { ($0.n ?? .min) > 3 },
        Filter(name: "n <= 3", filters: [.init(.field("n"), .lessThanOrEquals, .int64(3))]) { ($0.n ?? .max) <= 3 },
        Filter(name: "n = 3", filters: [.init(.field("n"), .equals, .int64(3))]) { $0.n == 3 },
        Filter(
            name: "-5 <= n < 5",
            filters: [.init(.field("n"), .greaterThanOrEquals, .int64(-5)), .init(.field("n"), .lessThan, .int64(5))]
        ) { row in row.n.map { $0 >= -5 && $0 < 5 } ?? false },
        Filter(name: "m > 200", filters: [.init(.field("m"), .greaterThan, .int64(200))]) { ($0.m ?? .min) > 200 },
    ]

    private static func precedes(_ one: Row, _ other: Row, by order: [Order]) -> Bool {
        for key in order {
            switch (key.value(one), key.value(other)) {
            case (nil, nil): continue
            case (nil, _): return key.isAscending
            case (_, nil): return !key.isAscending
            case (let one?, let other?):
                if one != other { return key.isAscending ? one < other : one > other }
            }
        }
        return one.name < other.name
    }

    private func names(_ query: CloudQuery) async throws -> [String] {
        var (names, place): ([String], QueryContinuation?) = ([], nil)
        repeat {
            let page = try await database.query(
                query, in: Self.zone, limit: Self.pageSize, desiredKeys: [], continuation: place)
            names += page.records.map(\.id.recordName)
            place = page.continuation
        } while place != nil
        return names
    }

    private func compare(_ rows: [Row], _ orders: [[Order]], _ what: String) async throws {
        for filter in Self.filters {
            for order in orders {
                let query = CloudQuery(recordType: "Note", filters: filter.filters, sorts: order.map(\.sort))
                let wanted = rows.filter(filter.test).sorted { Self.precedes($0, $1, by: order) }.map(\.name)
                let text = order.map { "\($0.field) \($0.isAscending ? "up" : "down")" }.joined(separator: ", ")
                try requireEqual(try await names(query), wanted, "\(what), \(filter.name), by \(text)")
            }
        }
    }

    private static func orders(_ fields: String...) -> [[Order]] {
        let (up, down) = (fields.map { Order(field: $0, isAscending: true) }, fields.map { Order(field: $0, isAscending: false) })
        return [up, down]
    }

    /// Compares the pages of queries with the sorted rows: for new, changed and deleted records, and after indexes were added and
    /// removed.
    package func run() async throws {
        var rows = Self.rows(400)
        try await modify(rows.map { RecordOperation(.create, record($0)) })
        // The indexes are added after the records.
        try await index([.queryable], "recordName")
        try await index([.queryable], "tags")
        try await index([.queryable, .sortable], "n")
        try await index([.queryable, .sortable], "m")
        let mixed = [Order(field: "n", isAscending: true), Order(field: "m", isAscending: false)]
        let orders = Self.orders("n") + Self.orders("n", "m") + [mixed]
        try await compare(rows, orders, "records before their indexes")

        var operations: [RecordOperation] = []
        for place in rows.indices where place % 5 == 0 {
            rows[place].n = place % 10 == 0 ? nil : 17
            operations.append(RecordOperation(.forceReplace, record(rows[place])))
        }
        for place in rows.indices where place % 9 == 1 {
            operations.append(RecordOperation(.forceDelete, record(rows[place])))
        }
        rows = rows.enumerated().filter { $0.offset % 9 != 1 }.map(\.element)
        let more = Self.rows(500).dropFirst(400).map { row in
            Row(name: "x\(row.name)", n: row.n, m: row.m, tags: row.tags)
        }
        rows += more
        operations += more.map { RecordOperation(.create, record($0)) }
        // A record is changed or deleted in a request of its own.
        for begin in stride(from: 0, to: operations.count, by: 40) {
            try await modify(Array(operations[begin..<min(begin + 40, operations.count)]))
        }
        try await compare(rows, orders, "changed records")

        // The index is made again, with another number, after it was removed.
        try await index([.queryable], "n")
        try await index([.queryable, .sortable], "n")
        try await compare(rows, Self.orders("n"), "an index made again")
    }
}
