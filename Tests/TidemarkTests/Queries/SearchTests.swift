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

/// Goal: a full-text index finds the current text of records after every way of writing. Method: after each write, the names that
/// a search finds are compared with those that the texts themselves give.
@Suite(.timeLimit(.minutes(30))) struct SearchTests {
    struct Place: Tidemark.Record, Equatable {
        static var indexes: [RecordIndex<Place>] { [.fullText(\.title, \.details, language: "en")] }
        var id: String
        var title: String
        var details: String?
        var nights = 0
        var recordName: String { id }
    }

    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func names(_ text: String, _ journal: PersistentContainer) async throws -> [String] {
        try await journal.search(Place.self, text).map(\.record.id)
    }

    @Test func `a program with declared types finds records that were fetched, and does not write them twice`() async throws {
        let place = try TwoUserFixture(scratch)
        let (laptop, phone) = (try await place.person("anna", device: "1"), try await place.person("anna", device: "2"))
        try await phone.container.declare([Place.self])
        try await laptop.container.save(Place(id: "senja", title: "Senja", details: "A fjord"))
        try await laptop.sync()
        try await phone.sync()
        #expect(try await names("fjord", phone.container) == ["senja"])
        // The index follows later records.
        try await laptop.container.save(Place(id: "narvik", title: "Narvik", details: "Another fjord"))
        try await laptop.sync()
        try await phone.sync()
        #expect(Set(try await names("fjord", phone.container)) == ["senja", "narvik"])
        // An index that is declared after the records arrived has them as well.
        let tablet = try await place.person("anna", device: "3")
        try await tablet.sync()
        await #expect(throws: StoreError(.schema, "")) { try await names("fjord", tablet.container) }
        try await tablet.container.declare([Place.self])
        #expect(Set(try await names("fjord", tablet.container)) == ["senja", "narvik"])
        let size = try tablet.container.history().transactions().count
        try await tablet.container.declare([Place.self])
        #expect(try tablet.container.history().transactions().count == size)
        #expect(try StoreVerification(of: tablet.container.directory).run().isOK)
    }

    @Test func `an index that a program no longer declares is dropped with the declaration`() async throws {
        struct Plain: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var title: String
            var recordName: String { id }
        }
        let journal = try scratch.journal()
        try await journal.save(Place(id: "senja", title: "Senja"))
        #expect(try await names("senja", journal) == ["senja"])
        try await journal.declare([Plain.self])
        await #expect(throws: StoreError(.schema, "")) { try await names("senja", journal) }
        try await journal.declare([Place.self])
        #expect(try await names("senja", journal) == ["senja"])
    }

    @Test func `results are ranked, and show the found words`() async throws {
        let journal = try scratch.journal()
        try await journal.save([
            Place(
                id: "senja", title: "Senja",
                details: "An island. Walking along the fjord, and a very long text about everything else."),
            Place(id: "geiranger", title: "The Geiranger fjord", details: "A fjord, and nothing but the fjord"),
            Place(id: "oslo", title: "Ósló", details: nil, nights: 3), Place(id: "empty", title: "", details: nil),
        ])
        let results = try await journal.search(Place.self, "FJORDS")
        #expect(results.map(\.record.id) == ["geiranger", "senja"])
        #expect(results[0].score > results[1].score)
        #expect(results[0].texts["title"]?.marked("[", "]") == "The Geiranger [fjord]")
        #expect(results[0].texts["details"]?.marked("[", "]") == "A [fjord], and nothing but the [fjord]")
        #expect(results[1].excerpt.marked("<", ">").contains("<fjord>"))
        #expect(try await names("walk", journal) == ["senja"])
        #expect(try await names("oslo", journal) == ["oslo"])
        #expect(try await names("gei*", journal) == ["geiranger"])
        #expect(try await names("\"the fjord\"", journal) == ["geiranger", "senja"].sorted())
        #expect(try await names("fjord senja", journal) == ["senja"])
        #expect(try await journal.fetchAll(Place.self, where: .matching("oslo") && \.nights == 3).map(\.id) == ["oslo"])
        #expect(try await journal.count(Place.self, where: !.matching("fjord")) == 2)
        #expect(try await journal.search(Place.self, "fjord", where: \.title == "Senja").map(\.record.id) == ["senja"])
        #expect(try await journal.search(Place.self, "fjord", limit: 1).map(\.record.id) == ["geiranger"])
    }

    @Test(arguments: [
        "", "\"", "\"\"", "*", "fjord AND", "NEAR(", "title:fjord", "^a", "a OR \"b", "'; DROP TABLE Place; --", "\u{0}",
        "- + ()",
    ])
    func `any text can be searched for`(text: String) async throws {
        let journal = try scratch.journal()
        try await journal.save(Place(id: "a", title: "title:fjord AND b"))
        _ = try await journal.search(Place.self, text)
        _ = try await journal.count(Place.self, where: .matching(text))
        #expect(try await names("fjord", journal) == ["a"])
    }

    @Test func `a search follows each way of writing`() async throws {
        let journal = try scratch.journal()
        try await journal.save((0..<50).map { Place(id: "p\($0)", title: "number\($0) all") })
        try await journal.save(Place(id: "p1", title: "changed all"))
        try await journal.save(Place(id: "p2", title: "number2 all", nights: 9))
        #expect(try await names("number1", journal) == [])
        #expect(try await names("changed", journal) == ["p1"])
        try await journal.delete(Place.self, named: "p3")
        #expect(try await names("number3", journal) == [])
        #expect(try await journal.updateAll(Place.self, where: \.nights == 9, set: ["title": "updated all"]) == ["p2"])
        #expect(try await names("updated", journal) == ["p2"])
        #expect(try await journal.deleteAll(Place.self, where: .matching("number4")) == ["p4"])
        #expect(try await journal.search(Place.self, "all", limit: 100).count == 48)
        // A write that fails leaves the index as it was.
        await #expect(throws: (any Error).self) {
            try await journal.save([Place(id: "p5", title: "rolled back"), Place(id: "", title: "no name")])
        }
        #expect(try await names("rolled", journal) == [])
        try await journal.undo(transaction: #require(scratch.reader().transactions().map(\.id).max()))
        #expect(try await names("number4", journal) == ["p4"])
        let lines = (0..<60).map { #"{"id": "p\#($0)", "title": "imported\#($0) all", "nights": 0}"# }
        var options = ImportOptions(type: "Place", nameField: "id")
        options.batchSize = 10
        try await scratch.importing(lines: lines, options)
        #expect(try await names("imported17", journal) == ["p17"])
        #expect(try await journal.search(Place.self, "all", limit: 100).count == 60)
        #expect(try scratch.verification().isOK)
        let copy = try ContainerDirectory(
            openingAt: URL(
                fileURLWithPath: ContainerBackup(
                    of: ContainerDirectory(openingAt: scratch.container), to: scratch["copy.tidemark"]
                ).run().path))
        #expect(try StoreVerification(of: copy).run().isOK)
        #expect(try await names("imported17", PersistentContainer(directory: copy, author: "copy")) == ["p17"])
        #expect(try await ReadOnlyContainer(directory: copy).search(Place.self, "imported17").map(\.record.id) == ["p17"])
    }

    @Test func `an index of an existing type has its records, and a type without one is refused`() async throws {
        struct Plain: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var title: String
            var recordName: String { id }
        }
        let journal = try scratch.journal()
        try await journal.save((0..<20).map { Plain(id: "p\($0)", title: "number\($0)") })
        await #expect(throws: StoreError(.schema, "")) { try await journal.search(Plain.self, "number7") }
        await #expect(throws: StoreError(.schema, "")) { try await journal.fetchAll(Plain.self, where: .matching("number7")) }
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        try await store.addIndex(FieldIndex(fullText: ["title"], language: "de"), to: "Place")
        #expect(try await journal.search(Plain.self, "number7").map(\.record.id) == ["p7"])
        // The other connection learns of the index before it writes.
        try await journal.save(Plain(id: "p7", title: "Größe"))
        #expect(try await journal.search(Plain.self, "grosse").isEmpty)
        #expect(try await journal.search(Plain.self, "größe").map(\.record.id) == ["p7"])
        #expect(try await journal.search(Plain.self, "number7").isEmpty)
        try await store.dropIndex(named: "text:title", of: "Place")
        try await journal.save(Plain(id: "p8", title: "after"))
        #expect(try scratch.verification().isOK)
    }

    @Test func `a damaged text is found as it was before, and a damaged index is built again`() async throws {
        do {
            try await scratch.journal().save((0..<3).map { Place(id: "p\($0)", title: "title\($0)", details: "fjord\($0)") })
        }
        try await Damage.checkpoint(scratch.container)
        try Damage.flip(scratch["Test.tidemark/private.sqlite"], after: "title1", byte: 0, bit: 1)
        #expect(try scratch.verification().problems.map(\.kind) == [.record])
        #expect(try await names("fjord1", scratch.journal()) == ["p1"])
        try await scratch.journal().delete(Place.self, named: "p1")
        #expect(try scratch.verification().isOK)
        #expect(try await names("fjord1", scratch.journal()) == [])
        // An index without its entries, and then without its pages.
        let store = scratch["Test.tidemark/private.sqlite"]
        for damage in [
            "DELETE FROM \"\(Self.table)\" WHERE rowid = 3", "UPDATE \"\(Self.table)_data\" SET block = x'00' WHERE id > 10",
        ] {
            try DatabaseQueue.execute(store, damage)
            let records = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
            #expect(try await records.rebuildDamagedIndexes() == [Self.table], "\(damage)")
            #expect(try await records.rebuildDamagedIndexes() == [])
            #expect(try await names("fjord2", scratch.journal()) == ["p2"])
        }
        try DatabaseQueue.execute(store, "DELETE FROM \"\(Self.table)\" WHERE rowid = 3")
        #expect(try scratch.verification().problems.map(\.kind) == [.index])
    }

    private static let table = "tide_text_Place.title.details"
}
