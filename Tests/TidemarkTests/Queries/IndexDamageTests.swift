import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: a flipped bit in a column with an index is damage of one record, as in any other column.
/// Method: a bit is flipped in the database file, in the table's row and not in the index, and then the container is used.
@Suite(.timeLimit(.minutes(30))) struct IndexDamageTests {
    struct Trip: Tidemark.Record, Equatable {
        var id: String
        var recordName: String { id }
    }

    /// The text before each column with an index shows where the column's value begins in the file.
    struct Stop: Tidemark.Record, Equatable {
        static let uniqueKeys = [UniqueKey("code")]
        static var indexes: [RecordIndex<Stop>] { [.on(\.place, \.nights)] }
        var id: String
        var beforeTrip: String
        var trip: Reference<Trip>
        var beforeCode: String
        var code: String
        var beforePlace: String
        var place: String
        var nights = 1
        var recordName: String { id }

        init(_ id: String) {
            self.id = id
            (beforeTrip, beforeCode, beforePlace) = ("trip of \(id):", "code of \(id):", "place of \(id):")
            (trip, code, place) = (Reference("north-\(id)"), "code-\(id)", "fjord-\(id)")
        }
    }

    static let columns = ["trip", "code", "place"]
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    /// Makes three stops, and flips bits of one of them.
    private func damage(_ column: String, bits: Int = 1) async throws {
        do {
            let journal = try scratch.journal()
            try await journal.save(["a", "b", "c"].map { Stop($0) })
        }
        try await Damage.checkpoint(scratch.container)
        for byte in 0..<bits {
            try Damage.flip(
                scratch["Test.tidemark/private.sqlite"], after: "\(column) of b:", byte: byte, bit: 1)
        }
    }

    private func store() throws -> RecordStore { try RecordStore(container: ContainerDirectory(openingAt: scratch.container)) }

    /// The problems that the examination finds, by kind.
    private func found() throws -> [VerificationReport.Problem.Kind: Int] {
        Dictionary(grouping: try scratch.verification().problems, by: \.kind).mapValues(\.count)
    }

    private func stops() async throws -> [String: Stop] {
        Dictionary(uniqueKeysWithValues: try await scratch.journal().fetchAll(Stop.self).map { ($0.id, $0) })
    }

    @Test(arguments: columns)
    func `verify tells a damaged record from its index, and a repair mends both`(column: String) async throws {
        try await damage(column)
        #expect(try found() == [.record: 1, .index: 1])
        let store = try store()
        let repaired = try await store.repair(try await store.damagedRows())
        #expect(repaired.map(\.record.name) == ["b"] && repaired.map(\.source) == [.digest])
        #expect(try await store.rebuildDamagedIndexes() == [])
        #expect(try found() == [:])
        #expect(try await stops() == ["a": Stop("a"), "b": Stop("b"), "c": Stop("c")])
    }

    @Test(arguments: columns)
    func `a damaged record is repaired from history`(column: String) async throws {
        do {
            let journal = try scratch.journal()
            try await journal.save(["a", "b", "c"].map { Stop($0) })
            // The earlier values are the same except for these, which are restored.
            var other = Stop("b")
            (other.trip, other.code, other.place) = (Reference("south"), "south", "south")
            try await journal.save(other)
            try await journal.save(Stop("b"))
            try await journal.save(other)
            try await journal.save(Stop("b"))
        }
        try await Damage.checkpoint(scratch.container)
        for byte in 0..<3 {
            try Damage.flip(
                scratch["Test.tidemark/private.sqlite"], after: "\(column) of b:", byte: byte, bit: 1)
        }
        #expect(try found() == [.record: 1, .index: 1])
        let store = try store()
        // History has the value, which the record had twice.
        let repaired = try await store.repair(try await store.damagedRows())
        #expect(repaired.map(\.source) == [.history])
        #expect(try found() == [:])
        #expect(try await stops()["b"] == Stop("b"))
    }

    @Test(arguments: columns)
    func `a damaged record can be deleted, and restored`(column: String) async throws {
        try await damage(column, bits: 3)
        let journal = try scratch.journal()
        try await journal.delete(Stop.self, named: "b")
        #expect(try found() == [:])
        #expect(try await stops() == ["a": Stop("a"), "c": Stop("c")])
        try await journal.save(Stop("b"))
        #expect(try found() == [:])
        #expect(try await journal.fetchAll(Stop.self, where: \.place == "fjord-b") == [Stop("b")])
        #expect(try await journal.fetchAll(Stop.self, where: \.trip == Trip(id: "north-b")) == [Stop("b")])
    }

    @Test(arguments: columns)
    func `an import with the record's values repairs it in place`(column: String) async throws {
        try await damage(column, bits: 3)
        let stop = Stop("b")
        let line =
            """
            {"id": "b", "beforeTrip": "\(stop.beforeTrip)", "trip": "\(stop.trip.recordName)", "beforeCode": "\(stop.beforeCode)", \
            "code": "\(stop.code)", "beforePlace": "\(stop.beforePlace)", "place": "\(stop.place)", "nights": 1}
            """
        let summary = try await scratch.importing(lines: [line], ImportOptions(type: "Stop", nameField: "id"))
        #expect(summary.changes.repaired == 1, "\(summary)")
        #expect(try found() == [:])
        #expect(try await stops() == ["a": Stop("a"), "b": Stop("b"), "c": Stop("c")])
    }

    @Test(arguments: columns)
    func `an edit of a damaged record is refused, and saved after the damage was accepted`(column: String) async throws {
        try await damage(column, bits: 2)
        let journal = try scratch.journal()
        await #expect(throws: StoreError(.damaged, "")) { try await journal.save(Stop("b")) }
        let store = try store()
        _ = try await store.accept(try await store.damagedRows())
        try await journal.save(Stop("b"))
        #expect(try found() == [:])
        #expect(try await stops()["b"] == Stop("b"))
    }

    @Test(arguments: columns)
    func `a backup is refused because of the record, and made if damage is allowed`(column: String) async throws {
        try await damage(column)
        let container = try ContainerDirectory(openingAt: scratch.container)
        #expect(throws: StoreError(.damaged, "")) {
            try ContainerBackup(of: container, to: scratch["refused.tidemark"]).run()
        }
        var backup = ContainerBackup(of: container, to: scratch["copy.tidemark"])
        backup.allowsDamage = true
        _ = try backup.run()
        let copy = try ContainerDirectory(openingAt: scratch["copy.tidemark"])
        let problems = try StoreVerification(of: copy).run().problems
        #expect(problems.map(\.kind).sorted { $0.rawValue < $1.rawValue } == [.index, .record])
        let store = try RecordStore(container: copy)
        _ = try await store.repair(try await store.damagedRows())
        #expect(try StoreVerification(of: copy).run().isOK)
    }

    @Test func `an index that is damaged itself is built again by verify, and before a write that misses its entry`() async throws
    {
        for isRepaired in [true, false] {
            let scratch = try Scratch()
            do {
                let journal = try scratch.journal()
                try await journal.save(["a", "b", "c"].map { Stop($0) })
            }
            try await Damage.checkpoint(scratch.container)
            // The row's key in the index of places: its value and its row, which the file has only once.
            let file = scratch["Test.tidemark/private.sqlite"]
            var data = try Data(contentsOf: file)
            let place = try #require(data.range(of: Data("fjord-b".utf8), options: .backwards)?.lowerBound)
            data[place] ^= 1
            try data.write(to: file)
            #expect(try scratch.verification().problems.map(\.kind) == [.index])
            if isRepaired {
                let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
                #expect(try await store.rebuildDamagedIndexes() == ["tide_index_Stop.place.nights"])
                #expect(try await store.rebuildDamagedIndexes() == [])
            } else {
                let journal = try scratch.journal()
                try await journal.delete(Stop.self, named: "b")
                try await journal.save(Stop("b"))
            }
            #expect(try scratch.verification().isOK)
            #expect(try await scratch.journal().fetchAll(Stop.self, where: \.place == "fjord-b") == [Stop("b")])
        }
    }
}
