import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: names and types that a cloud would refuse are normalised or refused where they enter a store: names that are not in
/// Unicode's form NFC, and types with too many fields. Records with older names can be renamed, and references follow.
@Suite(.timeLimit(.minutes(30))) struct RecordNameTests {
    private struct Trip: Tidemark.Record {
        var id: String
        var title: String
        var parent: Tidemark.Reference<Trip>?
        var others: [Tidemark.Reference<Trip>] = []
        var recordName: String { id }
    }

    private let scratch: Scratch
    private let composed = "caf\u{e9}"
    private let decomposed = "cafe\u{301}"
    private let author = TransactionAuthor("test", origin: .save)

    init() throws { scratch = try Scratch() }

    /// The names of a type's records, by their bytes, because Swift compares both forms as equal.
    private func names(_ type: String) throws -> [[UInt8]] {
        var names: [[UInt8]] = []
        try scratch.reader().forEachRecord(RecordQuery(type: type, sortField: "_name")) { names.append(Array($0.name.utf8)) }
        return names
    }

    private func store() throws -> RecordStore { try RecordStore(container: ContainerDirectory(openingAt: scratch.container)) }

    /// Adds a record with a decomposed name, as an older store may have it.
    private func addDecomposed(title: String) async throws {
        let store = try store()
        let batch = try RecordBatch(rowLimit: 1, byteLimit: 1 << 16)
        try batch.add(
            name: decomposed,
            values: [
                (.init(name: "title", type: .string), .string(title)),
                (.init(name: "others", type: .list(of: .reference)), .list([], of: .reference)),
            ])
        batch.digest(seed: store.identity.digestSeed)
        let write = BatchWrite(type: "Trip", nameField: "id", environment: .development, author: author)
        #expect(try await store.write(batch, write).inserted == 1)
    }

    @Test func `names and references of an import are composed, so that the same file is the same record`() async throws {
        let schema = RecordTypeSchema(
            name: "Trip", nameField: "id",
            fields: [.init(name: "parent", type: .reference), .init(name: "all", type: .list(of: .reference))])
        let options = ImportOptions(type: "Trip", nameField: "id", schema: [schema])
        let line = { (name: String) in #"{"id": "\#(name)", "parent": "\#(name)", "all": ["\#(name)"], "title": "\#(name)"}"# }
        try await scratch.importing(lines: [line(decomposed)], options)
        #expect(try names("Trip") == [Array(composed.utf8)])
        let again = try await scratch.importing(lines: [line(composed)], options)
        #expect(again.changes.inserted == 0 && again.changes.updated == 1)
        let (type, record) = try #require(try scratch.reader().record(named: decomposed))
        #expect(type.fields.map(\.name) == ["parent", "all", "title"])
        guard case .reference(let parent) = record.values[0], case .list(let all, _) = record.values[1] else {
            Issue.record("the references are there")
            return
        }
        #expect(Array(parent.utf8) == Array(composed.utf8))
        #expect(all.map { FieldValue?($0).isSame(as: .reference(composed)) } == [true])
        #expect(try scratch.verification().problems.isEmpty)
    }

    @Test func `a name that is too long in composed form is refused`() async throws {
        // Some characters are longer in form NFC than before.
        let name = String(repeating: "\u{fb2c}", count: 85)
        let summary = try await scratch.importing(
            lines: [#"{"id": "\#(name)"}"#, #"{"id": "b"}"#], .init(type: "Trip", nameField: "id"))
        #expect(summary.rejected == 1 && summary.firstRejections.first?.reason.contains("at most 255") == true)
        #expect(try names("Trip") == [Array("b".utf8)])
    }

    @Test func `a record that a program saves is found under both forms, as one record`() async throws {
        let journal = try scratch.journal()
        try await journal.save(Trip(id: decomposed, title: "1"))
        try await journal.save(Trip(id: composed, title: "2"))
        #expect(try names("Trip") == [Array(composed.utf8)])
        #expect(try await journal.fetch(Trip.self, named: decomposed)?.title == "2")
        try await journal.save(Trip(id: "x", title: "x", parent: .init(decomposed), others: [.init(decomposed)]))
        #expect(
            try await journal.fetch(Trip.self, named: "x").map { Array(($0.parent?.recordName ?? "").utf8) }
                == Array(composed.utf8))
        try await journal.delete(Trip.self, named: decomposed)
        #expect(try names("Trip") == [Array("x".utf8)])
    }

    @Test func `an older record with a decomposed name is edited where it is, and can be renamed`() async throws {
        let journal = try scratch.journal()
        try await journal.save([
            Trip(id: "a", title: "a", parent: .init(composed), others: [.init("x"), .init(composed)]),
            Trip(id: "b", title: "b", parent: .init("x")),
        ])
        try await addDecomposed(title: "1")
        try await journal.save(Trip(id: composed, title: "2"))
        #expect(try names("Trip").count == 3)
        let outcome = try await store().rename(RecordName(type: "Trip", name: decomposed), to: decomposed, author: author)
        #expect(Array(outcome.name.utf8) == Array(composed.utf8))
        #expect(try names("Trip") == [Array("a".utf8), Array("b".utf8), Array(composed.utf8)])
        #expect(try await journal.fetch(Trip.self, named: composed)?.title == "2")
        #expect(try scratch.verification().problems.isEmpty)
    }

    @Test func `references follow a record that is renamed, in one transaction that can be undone`() async throws {
        let journal = try scratch.journal()
        try await journal.save([
            Trip(id: "old", title: "1", parent: .init("old")),
            Trip(id: "a", title: "a", parent: .init("old"), others: [.init("x"), .init("old")]),
            Trip(id: "b", title: "b", parent: .init("x")),
        ])
        let before = try scratch.records("Trip")
        let outcome = try await store().rename(RecordName(type: "Trip", name: "old"), to: "new", author: author)
        #expect(outcome.referring.map(\.name) == ["a"])
        let a = try #require(try await journal.fetch(Trip.self, named: "a"))
        #expect(a.parent?.recordName == "new" && a.others.map(\.recordName) == ["x", "new"])
        let new = try #require(try await journal.fetch(Trip.self, named: "new"))
        #expect(new.title == "1" && new.parent?.recordName == "new")
        #expect(try await journal.fetch(Trip.self, named: "old") == nil)
        let last = try #require(try scratch.reader().transactions(limit: 1).first)
        #expect((last.inserted, last.updated, last.deleted) == (1, 1, 1))
        // The cloud gets the deletion first.
        let kinds = try scratch.reader().changes(ofTransaction: last.id).changes.map { "\($0.kind) \($0.record)" }
        #expect(kinds.firstIndex(of: "delete old") == 0)
        try await journal.undo(transaction: last.id)
        #expect(try scratch.records("Trip") == before)
        #expect(try scratch.verification().problems.isEmpty)
    }

    @Test func `renaming to the name of another record is refused, and changes nothing`() async throws {
        struct Note: Tidemark.Record {
            var id: String
            var text: String
            var recordName: String { id }
        }
        let journal = try scratch.journal()
        try await journal.save([Trip(id: "a", title: "a"), Trip(id: "b", title: "b", parent: .init("a"))])
        try await journal.save(Note(id: "n", text: "n"))
        let before = try scratch.records("Trip")
        let store = try store()
        for name in ["b", "n", "", String(repeating: "x", count: 256), "a\u{1}"] {
            let error = await #expect(throws: StoreError.self) {
                try await store.rename(RecordName(type: "Trip", name: "a"), to: name, author: author)
            }
            #expect(error?.code == .invalid)
        }
        await #expect(throws: StoreError(.notFound, "")) {
            try await store.rename(RecordName(type: "Trip", name: "z"), to: "y", author: author)
        }
        #expect(try scratch.records("Trip") == before)
    }

    @Test func `a type with more fields than can be synchronised is refused`() async throws {
        let row = { (count: Int) in "{\"id\": \"a\", " + (0..<count).map { "\"f\($0)\": 1" }.joined(separator: ", ") + "}" }
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [row(256)], .init(type: "Wide", nameField: "id"))
        }
        #expect(
            error?.cause?.code == .schema
                && error?.message.contains("would have 256 fields; at most 255 can be synchronised") == true)
        #expect(try await scratch.importing(lines: [row(255)], .init(type: "Wide", nameField: "id")).changes.inserted == 1)
    }
}
