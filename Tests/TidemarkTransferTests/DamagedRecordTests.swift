import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkTransfer

/// Goal: damaged records of a store are not silently overwritten by an import, exported, backed up or moved. Method: values are
/// changed in the database file without the store.
@Suite(.timeLimit(.minutes(30))) struct DamagedRecordTests {
    private static let lines = [
        #"{"id": "a", "caption": "Lofoten", "details": "islands", "n": 1}"#,
        #"{"id": "b", "caption": "Senja", "details": "an island", "n": 2}"#,
        #"{"id": "c", "caption": "Tromsø", "n": 3}"#,
    ]

    private func execute(_ scratch: Scratch, _ sql: String) throws {
        let queue = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    private func changes(_ scratch: Scratch) throws -> Int? {
        try scratch.reader().database.read { try Int.fetchOne($0, sql: "SELECT count(*) FROM tide_changes") }
    }

    /// The table is STRICT: only a change of its definition admits a value of another class, as damage does.
    private func forgetStrictness(_ scratch: Scratch) throws {
        let queue = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try queue.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA writable_schema = ON")
            try db.execute(
                sql: "UPDATE sqlite_master SET sql = replace(sql, 'STRICT', '') WHERE type = 'table' AND name = 'Destination'")
            try db.execute(sql: "PRAGMA writable_schema = RESET")
        }
        try queue.close()
    }

    /// A container of three records, `b` of which is damaged.
    private func damaged() async throws -> Scratch {
        let scratch = try Scratch()
        try await scratch.importing(lines: Self.lines, .destination())
        try execute(scratch, "UPDATE Destination SET details = 'rubbish', n = NULL WHERE _key = 'b'")
        #expect(try scratch.verification().problems.map(\.record) == ["b"])
        return scratch
    }

    @Test(
        arguments: [
            // A UUID of digits alone as if it were in upper case: the record could be there twice.
            ("x'6161616161616161616161616161616155'", false), ("x'6161616161616161616161616161616156'", false), ("x'61'", false),
            ("'00112233-4455-6677-8899-aabbccddeeff'", false), ("x'61616161616161616161616161616a6155'", true),
            ("x'61616161616161616161616161616161'", true),
        ])
    func `a key that stands for no name is reported`(key: String, isOne: Bool) async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: Self.lines, .destination())
        try execute(scratch, "UPDATE Destination SET _key = \(key) WHERE _key = 'b'")
        let problems = try scratch.verification().problems.filter {
            $0.message.contains("has a key, zone or version that cannot be one")
        }
        #expect(problems.isEmpty == isOne)
    }

    @Test func `importing the source again repairs damaged records, without history`() async throws {
        let scratch = try await damaged()
        let before = try changes(scratch)
        let summary = try await scratch.importing(lines: Self.lines, .destination())
        #expect(summary.changes == ChangeCounts(unchanged: 3, repaired: 1))
        #expect(summary.rejected == 0)
        #expect(try scratch.verification().isOK)
        #expect(try scratch.records("Destination")[1] == #"{"id":"b","caption":"Senja","details":"an island","n":2}"#)
        #expect(try changes(scratch) == before)
    }

    @Test func `an import that leaves out a field removes an invalid value that appeared in it`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: Self.lines, .destination())
        try execute(scratch, "UPDATE Destination SET details = 'rubbish' WHERE _key = 'c'")
        let summary = try await scratch.importing(lines: Self.lines, .destination())
        #expect(summary.changes == ChangeCounts(unchanged: 3, repaired: 1))
        #expect(try scratch.verification().isOK)
    }

    @Test func `a row that changes a damaged record is refused, and the others are written`() async throws {
        let scratch = try await damaged()
        let summary = try await scratch.importing(
            lines: [#"{"id": "a", "n": 10}"#, #"{"id": "b", "caption": "Senja, edited"}"#, #"{"id": "c", "n": 30}"#],
            .destination { $0.rejects = scratch["rejects.jsonl"] })
        #expect(summary.changes == ChangeCounts(updated: 2))
        #expect(try scratch.rejects().map { "\($0.line) \($0.code)" } == ["2 damaged"])
        #expect(try scratch.verification().problems.map(\.record) == ["b"])
    }

    @Test(arguments: ["details = CAST(x'4cff4d' AS TEXT)", "height = 1e999", "details = CAST(x'00e92022' AS TEXT)"])
    func `history stays readable after the deletion of a record with unreadable text`(damage: String) async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "details": "islands", "height": 1.5}"#], .destination())
        try execute(scratch, "UPDATE Destination SET \(damage)")
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        let author = TransactionAuthor("test", origin: .save)
        #expect(try await store.delete(matching: RecordQuery(type: "Destination"), author: author) == ["a"])
        #expect(try scratch.reader().changes(ofRecord: "a").map(\.kind) == [.delete, .insert])
        let deletion = try #require(try scratch.reader().changes(ofRecord: "a").first?.transaction.id)
        await #expect(throws: StoreError(.damaged, "")) { try await store.undo(transaction: deletion, author: "test") }
        #expect(try scratch.verification().isOK)
    }

    @Test func `text that a damaged header calls a blob is damage`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: Self.lines, .destination())
        try forgetStrictness(scratch)
        try execute(scratch, "UPDATE Destination SET caption = CAST(caption AS BLOB) WHERE _key = 'b'")
        var damaged: [String] = []
        try scratch.reader().forEachRecord(RecordQuery(type: "Destination"), checksDigests: true) { record in
            if !record.isIntact { damaged.append(record.name) }
        }
        #expect(damaged == ["b"])
    }

    @Test(arguments: [BulkExport.Format.jsonl, .csv])
    func `an export leaves out a damaged record and names it`(format: BulkExport.Format) async throws {
        let scratch = try await damaged()
        let file = scratch["export.\(format.rawValue)"]
        let summary = try BulkExport(
            from: ContainerDirectory(openingAt: scratch.container), type: "Destination", format: format, to: .file(file)
        ).run()
        #expect(summary.records == 2 && summary.damaged == ["b"])
        #expect(try !String(contentsOf: file, encoding: .utf8).contains("rubbish"))
    }

    @Test func `a backup of damaged records is refused with their names, and made on request`() async throws {
        let scratch = try await damaged()
        let container = try ContainerDirectory(openingAt: scratch.container)
        var backup = ContainerBackup(of: container, to: scratch["copy.tidemark"])
        let error = #expect(throws: StoreError(.damaged, "")) { try backup.run() }
        #expect(error?.message.contains("Destination b") == true)
        #expect(!FileManager.default.fileExists(atPath: scratch["copy.tidemark"].path))
        backup.allowsDamage = true
        #expect(try backup.run().damaged.map(\.record) == [RecordName(type: "Destination", name: "b")])
        // The copy has the same damage, and can be restored on request.
        let copy = try ContainerDirectory(openingAt: scratch["copy.tidemark"])
        #expect(try StoreVerification(of: copy).run().problems.map(\.record) == ["b"])
        var restoration = ContainerRestoration(of: copy, to: scratch["restored.tidemark"])
        #expect(throws: StoreError(.damaged, "")) { try restoration.run() }
        restoration.allowsDamage = true
        #expect(try restoration.run().damaged == 1)
    }

    @Test func `a move names the damaged records, and they are still damaged afterwards`() async throws {
        let scratch = try await damaged()
        let summary = try StoreMover(from: scratch.container, to: scratch["moved.tidemark"]).run()
        #expect(summary.damaged.map(\.record.name) == ["b"])
        let moved = try ContainerDirectory(openingAt: scratch["moved.tidemark"])
        #expect(try StoreVerification(of: moved).run().problems.map(\.record) == ["b"])
    }
}
