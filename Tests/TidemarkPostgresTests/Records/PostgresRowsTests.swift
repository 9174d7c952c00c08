import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: rows are what was written, and queries order and find as the protocol says.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresRecordRowsTests {
    private static func record(
        _ name: String, in zone: StoredZone.ID, at change: Int64, _ indexed: [Int64: [IndexValue]] = [:]
    ) -> StoredCloudRecord {
        StoredCloudRecord(
            zone: zone, name: name, type: "Note", fields: Data([1, 2, 3]), parent: nil, changed: change,
            created: .init(time: 1, userRecordName: "_anna"), modified: .init(time: change, userRecordName: "_anna"),
            isDeleted: false, dependsOn: [], assets: [], indexed: indexed)
    }

    private func makeZone(_ storage: PostgresCloudStorage) async throws -> StoredZone.ID {
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save(
                StoredZone(place: .init(scope: .private, owner: "_anna", name: "Zone\u{0}"), made: 0, changed: 0)
            ).id
        }
    }

    private static let values: [IndexValue] = [
        .real(-.infinity), .integer(.min), .real(-1e18), .integer(-1), .real(-0.5), .integer(0), .real(0.25), .integer(1),
        .real(1.5), .integer(1 << 53), .integer(1 << 53 + 1), .integer(1 << 53 + 2), .integer(.max - 1), .integer(.max),
        .real(0x1p63), .real(.infinity), .text(""), .text("\u{0}"), .text("a"), .text("a\u{0}"), .text("ab"), .text("b"),
        .text(String(repeating: "x", count: 5_000)), .text(String(repeating: "x", count: 5_000) + "a"), .text("\u{10ffff}"),
        .bytes(Data()), .bytes(Data([0])), .bytes(Data([255])),
    ]

    @Test func `the bytes of values sort as the values do`() {
        let bytes = Self.values.map(\.sortableBytes)
        for (one, next) in zip(bytes, bytes.dropFirst()) { #expect(one.lexicographicallyPrecedes(next)) }
        for value in Self.values { #expect(IndexValue(sortable: value.sortableBytes)?.sortableBytes == value.sortableBytes) }
        for number: Int64 in [.min, -1, 0, 7, 1 << 60 + 1, .max] {
            #expect(IndexValue(sortable: IndexValue.integer(number).sortableBytes) == .integer(number))
        }
        #expect(IndexValue.integer(5).sortableBytes == IndexValue.real(5).sortableBytes)
        #expect(IndexValue.integer(0).sortableBytes == IndexValue.real(-0.0).sortableBytes)
        #expect(IndexValue.integer(.max).sortableBytes != IndexValue.real(0x1p63).sortableBytes)
    }

    @Test func `queries compare, order and go on at each value`() async throws {
        let storage = try await RecordsFixture().storage()
        let zone = try await makeZone(storage)
        let values = Self.values
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save(
                values.enumerated().map {
                    Self.record("r\(100 + $0.offset)", in: zone, at: Int64($0.offset) + 1, [4: [$0.element]])
                } + [Self.record("none", in: zone, at: 1000)])
            try rows.setLastChange(1000, of: "_anna")
        }
        func find(
            _ conditions: [IndexQuery.Condition], _ order: [IndexQuery.Order] = [], after: IndexQuery.Place? = nil,
            limit: Int = 100
        ) async throws -> FoundRecords {
            let query = IndexQuery(type: "Note", conditions: conditions, order: order, after: after)
            return try await storage.read { rows throws(CloudError) in
                try rows.find(query, in: zone, limit: limit, within: QueryBudget(steps: .max, time: .seconds(10)))
            }
        }
        let names = values.indices.map { "r\(100 + $0)" }
        for (index, value) in values.enumerated() {
            for (comparison, wanted) in [
                (IndexQuery.Comparison.less, names[..<index]), (.lessOrEqual, names[...index]), (.equal, names[index...index]),
                (.greaterOrEqual, names[index...]), (.greater, names[(index + 1)...]),
            ] {
                let found = try await find([.compare(.index(4), comparison, value)])
                #expect(found.rows.map(\.record.name) == Array(wanted), "\(comparison) \(index)")
                let rest = try await find([.not(.compare(.index(4), comparison, value))])
                #expect(
                    Set(rest.rows.map(\.record.name)) == Set(names + ["none"]).subtracting(wanted), "not \(comparison) \(index)")
            }
        }
        #expect(try await find([.isOneOf(.index(4), [values[3], values[22]])]).rows.map(\.record.name) == [names[3], names[22]])
        #expect(try await find([.beginsWith(.index(4), "a")]).rows.map(\.record.name) == Array(names[18...20]))
        #expect(try await find([.beginsWith(.index(4), "")]).rows.map(\.record.name) == Array(names[16...24]))
        let long = String(repeating: "x", count: 4_000)
        #expect(try await find([.beginsWith(.index(4), long)]).rows.map(\.record.name) == Array(names[22...23]))
        // Page by page, up and down.
        for isAscending in [true, false] {
            let order = [IndexQuery.Order(key: .index(4), isAscending: isAscending)]
            var (found, place): ([String], IndexQuery.Place?) = ([], nil)
            while true {
                let page = try await find([], order, after: place, limit: 3)
                found += page.rows.map(\.record.name)
                guard let last = page.rows.last else { break }
                place = .init(values: last.keys, name: last.record.name)
            }
            let all = ["none"] + names
            #expect(found == (isAscending ? all : all.reversed()))
        }
    }

    @Test func `a query that takes too long is cut, and its transaction goes on`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await makeZone(storage)
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save((1...2000).map { Self.record("r\($0)", in: zone, at: Int64($0), [4: [.integer(Int64($0))]]) })
            try rows.setLastChange(2000, of: "_anna")
        }
        let conditions = (0..<20).map { IndexQuery.Condition.not(.compare(.index(4), .equal, .integer(Int64(-$0 - 1)))) }
        let query = IndexQuery(type: "Note", conditions: conditions, order: [.init(key: .index(4), isAscending: false)])
        let (found, last) = try await storage.read { rows throws(CloudError) in
            (
                try rows.find(query, in: zone, limit: 5, within: QueryBudget(steps: .max, time: .milliseconds(1))),
                try rows.lastChange(of: "_anna")
            )
        }
        #expect(found.isCut)
        #expect(found.rows.isEmpty)
        #expect(last == 2000)
    }

    /// The engine answers with these records and a continuation, as it does over SQLite.
    @Test func `a query that is cut gives the records that it has found by then`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await makeZone(storage)
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save(
                (1000..<3000).map { number in
                    var record = Self.record("r\(number)", in: zone, at: Int64(number), [4: [.integer(Int64(number))]])
                    record.fields = Data(repeating: 1, count: 1_000)
                    return record
                })
            try rows.setLastChange(3000, of: "_anna")
        }
        // Each record that is looked at takes some time.
        try await records.fixture.sql(
            """
            ALTER TABLE tidemark_records RENAME TO real;
            CREATE VIEW tidemark_records AS SELECT * FROM real WHERE pg_sleep(0.01)::text IS NOT NULL;
            ANALYZE
            """)
        let query = IndexQuery(type: "Note", conditions: [], order: [])
        let (found, last) = try await storage.read { rows throws(CloudError) in
            (
                try rows.find(query, in: zone, limit: 300, within: QueryBudget(steps: .max, time: .seconds(1))),
                try rows.lastChange(of: "_anna")
            )
        }
        #expect(found.isCut)
        #expect((5..<200).contains(found.rows.count), "\(found.rows.count)")
        #expect(found.rows.map(\.record.name) == (0..<found.rows.count).map { "r\(1000 + $0)" })
        #expect(last == 3000)
    }

    @Test func `a row that is not what was written is damaged, until it is saved again`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        let zone = try await makeZone(storage)
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save([Self.record("a", in: zone, at: 1), Self.record("b\u{0}", in: zone, at: 2)])
            try rows.setLastChange(2, of: "_anna")
        }
        try await records.fixture.sql("UPDATE tidemark_records SET fields = '\\x010204' WHERE name = '\\x6200'")
        let damaged = try await storage.read { rows throws(CloudError) in try rows.damagedRecords() }
        #expect(damaged.map(\.name) == ["b\u{0}"])
        let damage = try #require(damaged.first?.damage)
        #expect(!damage.isNoted)
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.noteDamage(damage, of: "_anna", at: 3)
            try rows.setLastChange(3, of: "_anna")
        }
        let noted = try await storage.read { rows throws(CloudError) in try rows.records(["a", "b\u{0}"], in: zone) }
        #expect(noted["a"]?.damage == nil)
        #expect(noted["b\u{0}"]?.damage?.isNoted == true)
        #expect(noted["b\u{0}"]?.damage?.change == 2)
        #expect(noted["b\u{0}"]?.changed == 3)
        try await storage.write(owners: ["_anna"]) { rows throws(CloudError) in
            try rows.save([Self.record("b\u{0}", in: zone, at: 4)])
            try rows.setLastChange(4, of: "_anna")
        }
        #expect(try await storage.read { rows throws(CloudError) in try rows.damagedRecords() }.isEmpty)
        try await records.fixture.sql("UPDATE tidemark_zones SET made = 7")
        await #expect(throws: CloudError(.recordDamaged, "")) {
            try await storage.read { rows throws(CloudError) in try rows.zone(zone) }
        }
    }
}
