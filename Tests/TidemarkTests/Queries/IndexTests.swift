import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: the store has the declared indexes and those of references, and queries use them. Method: the indexes of a container are
/// compared with those that types of several versions declare; SQLite's plans.
@Suite(.timeLimit(.minutes(30))) struct IndexTests {
    struct Trip: Tidemark.Record, Equatable {
        var id: String
        var recordName: String { id }
    }

    enum Season: String, Codable, Sendable { case summer, winter }

    struct Stop: Tidemark.Record, Equatable {
        static var indexes: [RecordIndex<Stop>] { [.on(\.place, \.nights), .on(\.later)] }
        var id: String
        var place = ""
        var nights = 1
        var later: Season?
        var trip: Reference<Trip>?
        var tags: [Reference<Trip>] = []
        var recordName: String { id }
    }

    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// The indexes of the table of stops in SQLite, without the one of names.
    private func indexes() throws -> [String] {
        try scratch.reader().database.read { db in
            try String.fetchAll(
                db,
                sql: """
                    SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'Stop' AND name <> 'tide_name_Stop' ORDER BY name
                    """)
        }
    }

    private func plan(_ sql: String) throws -> String {
        try scratch.reader().database.read { db in
            try Row.fetchAll(db, sql: "EXPLAIN QUERY PLAN \(sql)").map { $0["detail"] as String }.joined(separator: "; ")
        }
    }

    @Test func `a save builds the declared indexes, and the index of a property with its first value`() async throws {
        let journal = try scratch.journal()
        try await journal.save(Stop(id: "a", trip: Reference("north")))
        #expect(try indexes() == ["tide_index_Stop.place.nights", "tide_reference_Stop.trip"])
        try await journal.save(Stop(id: "a", later: .summer, trip: Reference("north")))
        #expect(try indexes() == ["tide_index_Stop.later", "tide_index_Stop.place.nights", "tide_reference_Stop.trip"])
        #expect(try plan("SELECT * FROM _Stop WHERE place = 'x' ORDER BY nights").contains("tide_index_Stop.place.nights"))
        #expect(try plan("SELECT * FROM _Stop WHERE trip IN ('x', 'y')").contains("tide_reference_Stop.trip (trip=?)"))
        #expect(try scratch.verification().isOK)
    }

    @Test func `an index that a type no longer declares is dropped, and one that was added by hand stays`() async throws {
        struct Fewer: Tidemark.Record {
            static let recordType = "Stop"
            static var indexes: [RecordIndex<Fewer>] { [.on(\.nights)] }
            var id: String
            var nights = 1
            var recordName: String { id }
        }
        do { try await scratch.journal().save(Stop(id: "a", later: .summer)) }
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        try await store.addIndex(FieldIndex(["later", "nights"]), to: "Stop")
        // An index that a program declares and that was added by hand stays as well.
        try await store.addIndex(FieldIndex(["later"]), to: "Stop")
        try await scratch.journal().save(Fewer(id: "a", nights: 1))
        let reference = "tide_reference_Stop.trip"
        #expect(try indexes() == ["tide_index_Stop.later", "tide_index_Stop.later.nights", "tide_index_Stop.nights", reference])
        #expect(try await store.dropIndex(named: "later", of: "Stop").origin == .command)
        await #expect(throws: StoreError(.notFound, "")) { try await store.dropIndex(named: "later", of: "Stop") }
        try await scratch.journal().save(Stop(id: "b"))
        let now = ["tide_index_Stop.later", "tide_index_Stop.later.nights", "tide_index_Stop.place.nights", reference]
        #expect(try indexes() == now)
        #expect(try scratch.verification().isOK)
    }

    @Test func `an index shows in which fields every record has a value`() async throws {
        func complete() throws -> [String] {
            let source = try RecordSource(StoreReader(container: ContainerDirectory(openingAt: scratch.container)).snapshot())
            return try source.database.read { db in
                let fields = ["place", "nights", "trip", "later", "unknown"]
                let type = try source.type(db, named: "Stop")?.findingComplete(db, among: fields)
                return fields.filter { type?.isComplete($0) == true }
            }
        }
        let journal = try scratch.journal()
        try await journal.save(Stop(id: "a", trip: Reference("north")))
        // No index begins with the nights.
        #expect(try complete() == ["place", "trip"])
        try await journal.save(Stop(id: "b", later: .summer))
        #expect(try complete() == ["place"])
        try await journal.save([Stop(id: "a", later: .winter), Stop(id: "b", later: .summer, trip: Reference("north"))])
        #expect(try complete() == ["place", "later"])
    }

    @Test func `fields that an index can't have are refused`() async throws {
        let store: RecordStore
        do {
            try await scratch.journal().save(Stop(id: "a", tags: [Reference("b")]))
            store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        }
        let refused = [FieldIndex(["tags"]), FieldIndex(["unknown"]), FieldIndex([]), FieldIndex(["place", "place"])]
        for index in refused {
            await #expect(throws: StoreError(.schema, "")) { try await store.addIndex(index, to: "Stop") }
        }
        await #expect(throws: StoreError(.schema, "")) { try await store.addIndex(FieldIndex(["place"]), to: "Trip") }
        await #expect(throws: StoreError(.schema, "")) {
            try await store.addIndex(FieldIndex(fullText: ["place"], language: "'); DROP"), to: "Stop")
        }
        #expect(try indexes() == ["tide_index_Stop.place.nights", "tide_reference_Stop.trip"])
        struct Listed: Tidemark.Record {
            static let recordType = "Stop"
            static var indexes: [RecordIndex<Listed>] { [.on(\.tags)] }
            var id: String
            var tags: [Reference<Trip>] = []
            var recordName: String { id }
        }
        let journal = try scratch.journal()
        await #expect(throws: StoreError(.schema, "")) { try await journal.save(Listed(id: "a", tags: [Reference("c")])) }
    }

    @Test func `records are found along references and by indexed fields`() async throws {
        let journal = try scratch.journal()
        let trips = (0..<50).map { Trip(id: "trip \($0)") }
        try await journal.save(
            (0..<1000).map { Stop(id: "stop \($0)", place: "place \($0 % 7)", nights: $0 % 5, trip: Reference(trips[$0 % 50])) })
        let counts = try await journal.counts(Stop.self, referringTo: trips, by: \.trip)
        #expect(counts.values.allSatisfy { $0 == 20 } && counts.count == 50)
        #expect(try await journal.fetchAll(Stop.self, referringTo: [trips[3]], by: \.trip)[Reference(trips[3])]?.count == 20)
        #expect(try await journal.count(Stop.self, where: \.place == "place 3" && \.nights >= 3) == 57)
        #expect(try await journal.deleteAll(Stop.self, where: \.trip == trips[3]).count == 20)
        #expect(try await journal.count(Stop.self, where: \.trip == trips[3]) == 0)
        #expect(try scratch.verification().isOK)
    }
}
