import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkStore

/// Goal: a record that is merged with another of its unique key does not count as deleted: references follow it, and those that
/// can't follow stay. Method: records with known answers, in a separate container for each test.
@Suite(.timeLimit(.minutes(30))) struct RelationshipMergeTests {
    struct Code: Tidemark.Record, Equatable {
        static var uniqueKeys: [UniqueKey] { [UniqueKey("text")] }
        var id: String
        var text: String
        var recordName: String { id }
    }

    /// A record that a code owns: it is deleted with the code.
    struct Part: Tidemark.Record, Equatable {
        var id: String
        var code: Reference<Code>?
        var recordName: String { id }
        static var relationships: [Relationship<Part>] { [.owned(by: \.code)] }
    }

    /// A record that forbids deleting a code.
    struct Pass: Tidemark.Record, Equatable {
        var id: String
        var code: Reference<Code>
        var recordName: String { id }
        static var relationships: [Relationship<Pass>] { [.weak(\.code, onDelete: .deny)] }
    }

    /// A pair of references that is unique.
    struct Pair: Tidemark.Record, Equatable {
        static var uniqueKeys: [UniqueKey] { [UniqueKey("code", "part")] }
        var id: String
        var code: Reference<Code>
        var part: Reference<Part>
        var recordName: String { id }
        static var relationships: [Relationship<Pair>] {
            [.weak(\.code, onDelete: .cascade), .weak(\.part, onDelete: .cascade)]
        }
    }

    /// References without a declaration.
    struct Note: Tidemark.Record, Equatable {
        var id: String
        var code: Reference<Code>?
        var part: Reference<Part>?
        var recordName: String { id }
    }

    private let scratch: Scratch
    private let journal: PersistentContainer

    init() throws {
        scratch = try Scratch()
        journal = try scratch.journal()
    }

    private func names<R: Tidemark.Record>(_ type: R.Type) async throws -> [String] {
        try await journal.fetchAll(type).map(\.recordName).sorted()
    }

    @Test func `a damaged record is not deleted with a merged record, and does not forbid the merge`() async throws {
        try await journal.save([
            Code(id: "m", text: "x"), Part(id: "p1", code: Reference("m")), Part(id: "p2", code: Reference("m")),
            Pass(id: "s1", code: Reference("m")),
        ])
        try DamagedRows.run(journal.directory.store(.private)) { db in
            try db.execute(sql: "UPDATE Part SET _digest = _digest + 1 WHERE _key = 'p1'")
            try db.execute(sql: "UPDATE Pass SET _digest = _digest + 1 WHERE _key = 's1'")
        }
        let result = try await journal.save(Code(id: "a", text: "x"))
        #expect(result.replaced == [RecordName(type: "Code", name: "m"): "a"])
        #expect(result.cascaded == [])
        #expect(try await journal.fetch(Part.self, named: "p2")?.code == Reference("a"))
        let rows = try DamagedRows.run(journal.directory.store(.private)) { db in
            try String.fetchAll(db, sql: "SELECT code FROM Part UNION ALL SELECT code FROM Pass ORDER BY 1")
        }
        #expect(rows == ["a", "m", "m"])
    }

    @Test func `records whose unique key has a reference are merged when the reference follows`() async throws {
        try await journal.save([
            Code(id: "m", text: "x"), Code(id: "n", text: "y"), Part(id: "p"),
            Pair(id: "1", code: Reference("m"), part: Reference("p")), Pair(id: "2", code: Reference("n"), part: Reference("p")),
        ])
        let result = try await journal.save(Code(id: "n", text: "x"))
        #expect(
            result.replaced == [RecordName(type: "Code", name: "n"): "m", RecordName(type: "Pair", name: "2"): "1"])
        #expect(try await journal.fetchAll(Pair.self) == [Pair(id: "1", code: Reference("m"), part: Reference("p"))])
    }

    @Test func `references without a declaration follow a merge, too`() async throws {
        try await journal.save([Code(id: "n", text: "x"), Note(id: "1", code: Reference("n"), part: Reference("none"))])
        let result = try await journal.save([Code(id: "b", text: "x")])
        #expect(result.counts.updated >= 1)
        #expect(
            try await journal.fetch(Note.self, named: "1") == Note(id: "1", code: Reference("b"), part: Reference("none")))
    }

    @Test func `10,000 records of one unique key are merged in one save, and references to each follow`() async throws {
        let count = 10_000
        func name(_ number: Int) -> String { String(format: "c%05d", number) }
        try await journal.save(
            (0..<count).map { Pass(id: "s\($0)", code: Reference(name($0))) })
        // From the greatest name to the least: each is merged with the next.
        let result = try await journal.save((0..<count).reversed().map { Code(id: name($0), text: "x") })
        #expect(result.replaced.count == count - 1)
        #expect(Set(result.replaced.values) == [name(0)])
        #expect(try await names(Code.self) == [name(0)])
        #expect(Set(try await journal.fetchAll(Pass.self).map(\.code)) == [Reference(name(0))])
    }

    @Test func `references follow records that an import merges with others`() async throws {
        try await journal.save([Code(id: "m", text: "x"), Pass(id: "s1", code: Reference("m"))])
        try await scratch.importing(lines: [#"{"id": "a", "text": "x"}"#], .init(type: "Code", nameField: "id"))
        #expect(try await names(Code.self) == ["a"])
        #expect(try await journal.fetch(Pass.self, named: "s1")?.code == Reference("a"))
        let report = try StoreVerification(of: journal.directory).run()
        #expect(report.problems.map(\.message) == [])
    }
}
