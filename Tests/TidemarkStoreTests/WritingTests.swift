import CTideCore
import Foundation
import GRDB
import GRDBSQLite
import TestSupport
import Testing
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite

@testable import TidemarkStore
@testable import TidemarkTransfer

/// Goal: a batch writes changed values, and records the changes. Method: whole states of the store after imports of a few lines.
@Suite(.timeLimit(.minutes(30))) struct WritingTests {
    private func rows(_ scratch: Scratch, _ sql: String) throws -> [[String]] {
        try scratch.reader().database.read { db in
            try Row.fetchAll(db, sql: sql).map { row in row.databaseValues.map { $0.isNull ? "NULL" : "\($0.storage.value!)" } }
        }
    }

    @Test func `inserts of a batch share one change with their range, and all of them are pending`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: (1...5).map { #"{"id": "r\#($0)", "n": \#($0)}"# }, .destination())
        #expect(
            try rows(scratch, "SELECT kind, first_row, last_row, previous, before FROM tide_changes") == [
                ["1", "1", "5", "NULL", "NULL"]
            ])
        #expect(try rows(scratch, "SELECT inserted, updated, deleted FROM tide_transactions") == [["5", "0", "0"]])
        #expect(try rows(scratch, "SELECT DISTINCT _version, _pending FROM Destination") == [["1", "-1"]])
    }

    @Test func `a value that SQLite can't bind fails the save, which stores nothing`() async throws {
        let scratch = try Scratch()
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "caption", type: .string)])
        func save(_ names: [String], _ caption: String) async throws {
            let edits = names.map { name in
                RecordEdit(
                    record: RecordName(type: "Destination", name: name), base: .any, values: ["caption": .string(caption)],
                    fields: ["caption"])
            }
            _ = try await store.save(
                edits, schemas: [schema], blobs: [], author: TransactionAuthor("test", origin: .save),
                policy: { _ in .overwrite }, check: { _ in })
        }
        try await save(["a"], "short")
        try await store.limitValues(to: 100_000)
        let long = String(repeating: "x", count: 200_000)
        for names in [["b"], ["a"], ["a", "b"]] {
            let error = await #expect(throws: StoreError.self) { try await save(names, long) }
            #expect(error?.message.contains("string or blob too big") == true)
        }
        try await save(["c"], "short")
        #expect(try rows(scratch, "SELECT caption FROM Destination ORDER BY _id") == [["short"], ["short"]])
    }

    @Test func `an update records the fields' earlier values, and does not touch other fields`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(
            lines: [#"{"id": "a", "caption": "one", "n": 1, "x": 1.5}"#, #"{"id": "b", "n": 2}"#], .destination())
        let summary = try await scratch.importing(lines: [#"{"id": "a", "caption": "two", "x": null}"#], .destination())
        #expect(summary.changes == ChangeCounts(inserted: 0, updated: 1, unchanged: 0))
        #expect(try scratch.records("Destination") == [#"{"id":"a","caption":"two","n":1}"#, #"{"id":"b","n":2}"#])
        #expect(
            try rows(scratch, "SELECT kind, first_row, last_row, previous, before FROM tide_changes WHERE kind = 2")
                == [["2", "1", "1", "1", #"{"caption":"one","x":1.5}"#]])
        let changes = try scratch.reader().changes(ofRecord: "a")
        #expect(changes.map(\.kind) == [.update, .insert])
        #expect(
            changes[0].fields == [
                .init(field: "caption", type: .string, before: .string("one"), after: .string("two")),
                .init(field: "x", type: .double, before: .double(1.5), after: nil),
            ])
    }

    @Test func `a row with unchanged values writes nothing to the disk`() async throws {
        let scratch = try Scratch()
        let lines = [#"{"id": "a", "caption": "one", "n": 1}"#, #"{"n": 2, "id": "b"}"#]
        try await scratch.importing(lines: lines, .destination())
        let before = try Data(contentsOf: scratch["Test.tidemark/private.sqlite"])
        let summary = try await scratch.importing(lines: lines.reversed(), .destination())
        #expect(summary.changes == ChangeCounts(inserted: 0, updated: 0, unchanged: 2))
        #expect(try Data(contentsOf: scratch["Test.tidemark/private.sqlite"]) == before)
        // Fields that a row leaves out, and null for a field without a value, change nothing either.
        let partial = try await scratch.importing(
            lines: [#"{"id": "a", "n": 1}"#, #"{"id": "b", "caption": null}"#], .destination())
        #expect(partial.changes == ChangeCounts(inserted: 0, updated: 0, unchanged: 2))
    }

    @Test func `history returns values of all types`() async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(
            name: "Destination", fields: [.init(name: "raw", type: .bytes), .init(name: "d", type: .double)])
        try await scratch.importing(lines: [#"{"id": "a", "raw": "AAH/", "d": 3}"#], .destination { $0.schema = [schema] })
        try await scratch.importing(lines: [#"{"id": "a", "raw": "", "d": 3.5}"#], .destination())
        #expect(
            try scratch.reader().changes(ofRecord: "a")[0].fields == [
                .init(field: "d", type: .double, before: .double(3), after: .double(3.5)),
                .init(field: "raw", type: .bytes, before: .bytes([0, 1, 255]), after: .bytes([])),
            ])
    }

    @Test func `records of one batch stay in the order of the source`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: ["c", "a", "b"].map { #"{"id": "\#($0)", "n": 1}"# }, .destination())
        #expect(try rows(scratch, "SELECT _name FROM _Destination ORDER BY _id") == [["c"], ["a"], ["b"]])
    }

    @Test func `a pending change collects the changed fields`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "x": 1, "y": 1, "z": 1}"#], .destination())
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        // As after an export that the cloud has acknowledged.
        try await store.write { db in try db.execute(sql: "UPDATE Destination SET _pending = NULL") }
        try await scratch.importing(lines: [#"{"id": "a", "x": 2}"#], .destination())
        try await scratch.importing(lines: [#"{"id": "a", "z": 2}"#], .destination())
        #expect(try rows(scratch, "SELECT hex(_pending) FROM Destination") == [["05"]])
    }

    @Test func `a record name is unique in its zone whatever the type`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        let summary = try await scratch.importing(
            lines: [#"{"id": "a", "n": 1}"#, #"{"id": "b", "n": 2}"#],
            .destination {
                $0.type = "Place"
                $0.rejects = scratch["rejects.jsonl"]
            })
        #expect(summary.changes.inserted == 1)
        #expect(try scratch.rejects().map(\.code) == ["nameTaken"])
        #expect(try scratch.rejects()[0].reason.contains("type Destination"))
    }

    @Test func `names keep their spelling`() async throws {
        let names = [
            "0e7f6f0a-8f3e-4c4e-9d2b-3f0f6d1b2a11", "0E7F6F0A-8F3E-4C4E-9D2B-3F0F6D1B2A11",
            "0e7F6f0a-8f3e-4c4e-9d2b-3f0f6d1b2a11",
            "00000000-0000-0000-0000-000000000000", "é", "a b", "0e7f6f0a8f3e4c4e9d2b3f0f6d1b2a11", "42",
        ]
        let scratch = try Scratch()
        try await scratch.importing(lines: names.map { #"{"id": "\#($0)", "n": 1}"# }, .destination())
        #expect(try Set(rows(scratch, "SELECT _name FROM _Destination").map { $0[0] }) == Set(names))
        let again = try await scratch.importing(lines: names.map { #"{"id": "\#($0)", "n": 1}"# }, .destination())
        #expect(again.changes == ChangeCounts(unchanged: names.count))
    }

    @Test func `a damaged record is reported`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(
            lines: [#"{"id": "a", "caption": "one"}"#, #"{"id": "b", "caption": "two"}"#], .destination())
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try await store.write { db in try db.execute(sql: "UPDATE Destination SET caption = 'tWo' WHERE caption = 'two'") }
        let report = try scratch.verification()
        #expect(report.problems.map(\.kind) == [.record])
        #expect(report.problems[0].record == "b")
    }

    @Test(arguments: [
        ("DELETE FROM Destination WHERE caption = 'two'", [VerificationReport.Problem.Kind.database]),
        ("UPDATE Destination SET _key = 'c' WHERE _key = 'b'", [.record]),
        ("DELETE FROM tide_changes", [.record, .database]),
        ("DROP VIEW _Destination", [.database]),
    ])
    func `removals and renames by plain SQL are found`(
        sql: String, kinds: [VerificationReport.Problem.Kind]
    ) async throws {
        let scratch = try Scratch()
        try await scratch.importing(
            lines: [#"{"id": "a", "caption": "one"}"#, #"{"id": "b", "caption": "two"}"#], .destination())
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try await store.write { db in try db.execute(sql: sql) }
        let problems = try scratch.verification().problems
        #expect(Set(problems.map(\.kind)) == Set(kinds))
        #expect(!problems.isEmpty)
    }

    @Test func `a source that names a record twice changes nothing when it is imported again`() async throws {
        let scratch = try Scratch()
        let lines = [
            #"{"id": "a", "caption": "one", "rating": 1}"#, #"{"id": "b", "caption": "b"}"#,
            #"{"id": "a", "caption": "two", "details": null}"#, #"{"id": "a", "details": "more"}"#,
        ]
        try await scratch.importing(lines: lines, .destination())
        let records = try scratch.records("Destination")
        #expect(
            records == [
                #"{"id":"a","caption":"two","rating":1,"details":"more"}"#, #"{"id":"b","caption":"b"}"#,
            ])
        #expect(try await scratch.importing(lines: lines, .destination()).changes == ChangeCounts(unchanged: 4))
        #expect(try scratch.records("Destination") == records)
        #expect(try scratch.verification().isOK)
    }

    @Test func `a field may have the name of an SQL keyword`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "order": "one", "select": 3}"#], .destination())
        #expect(try scratch.records("Destination") == [#"{"id":"a","order":"one","select":3}"#])
    }
}

/// Goal: loading an empty table without its index gives the same store. Method: small batches, names that repeat at chosen
/// places.
@Suite(.timeLimit(.minutes(30))) struct LoadingTests {
    private func lines(_ count: Int) -> [String] { (0..<count).map { #"{"id": "r\#($0)", "n": \#($0)}"# } }

    private func hasIndex(_ scratch: Scratch) throws -> Bool {
        try scratch.reader().database.read { db in
            try Bool.fetchOne(db, sql: "SELECT 1 FROM sqlite_master WHERE name = 'tide_name_Destination'") ?? false
        }
    }

    @Test(arguments: [0, 5, 25, 99])
    func `a repeated name is found wherever it repeats`(repeated: Int) async throws {
        let scratch = try Scratch()
        let changed = #"{"id": "r\#(repeated)", "n": -1}"#
        let summary = try await scratch.importing(
            lines: lines(100) + [changed] + lines(100), .destination { $0.batchSize = 10 })
        // If both rows are in one batch, the last one counts at once.
        let isOneBatch = repeated < 9
        #expect(summary.changes == ChangeCounts(inserted: 100, updated: isOneBatch ? 0 : 2, unchanged: isOneBatch ? 101 : 99))
        #expect(
            try scratch.records("Destination")
                == lines(100).map { $0.replacingOccurrences(of: ": ", with: ":").replacingOccurrences(of: ", ", with: ",") }
                .sorted { $0.split(separator: "\"")[3] < $1.split(separator: "\"")[3] })
        #expect(try scratch.verification().isOK)
        #expect(try hasIndex(scratch))
    }

    @Test func `an interrupted load is completed by the next writer`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: lines(20), .destination { $0.batchSize = 10 })
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        // The state after a process dies between two batches of a load.
        try await store.write { db in try db.execute(sql: "DROP INDEX tide_name_Destination") }
        #expect(try scratch.verification().isOK)
        let summary = try await scratch.importing(lines: lines(30), .destination { $0.batchSize = 10 })
        #expect(summary.changes == ChangeCounts(inserted: 10, updated: 0, unchanged: 20))
        #expect(try hasIndex(scratch))
    }

    @Test func `the indexes of references are left out while a table is loaded, and built by the next writer`() async throws {
        let scratch = try Scratch()
        let options = ImportOptions.destination {
            $0.batchSize = 10
            $0.references = [("trip", "Trip")]
        }
        func lines(_ range: Range<Int>) -> [String] { range.map { #"{"id": "r\#($0)", "trip": "t\#($0 % 3)"}"# } }
        func indexes() throws -> [String] {
            try scratch.reader().database.read { db in
                let sql = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'Destination' ORDER BY name"
                return try String.fetchAll(db, sql: sql)
            }
        }
        try await scratch.importing(lines: lines(0..<20), options)
        #expect(try indexes() == ["tide_name_Destination", "tide_reference_Destination.trip"])
        // The state of a store after an interrupted load.
        try DatabaseQueue.execute(
            scratch["Test.tidemark/private.sqlite"], "DROP INDEX \"tide_reference_Destination.trip\"")
        #expect(try scratch.verification().isOK)
        try await scratch.importing(lines: lines(20..<21), options)
        #expect(try indexes() == ["tide_name_Destination", "tide_reference_Destination.trip"])
        #expect(try scratch.verification().isOK)
    }

    @Test func `an interrupted load of another type is completed before names are looked up in it`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: lines(20), .destination { $0.batchSize = 10 })
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try await store.write { db in try db.execute(sql: "DROP INDEX tide_name_Destination") }
        let summary = try await scratch.importing(lines: lines(30), .destination { $0.type = "Place" })
        #expect(summary.rejected == 20)
        #expect(try hasIndex(scratch))
    }

    @Test func `another process's write in the middle of a load is noticed`() async throws {
        let scratch = try Scratch()
        let container = try ContainerDirectory(openingOrCreatingAt: scratch.container)
        let (first, second) = (try RecordStore(container: container), try RecordStore(container: container))
        func write(_ store: RecordStore, _ numbers: ClosedRange<Int>, more: Bool) async throws -> ChangeCounts {
            let file = try scratch.writeLines(numbers.map { #"{"id": "r\#($0)", "n": \#($0)}"# }, to: "part.jsonl")
            let reader = try ManifestReader(source: .file(file), options: .destination(), nameField: "id", knownFields: [])
            let filled = try await reader.fill(RecordBatch(rowLimit: 100, byteLimit: 1 << 20))
            filled.batch.digest(seed: store.identity.digestSeed)
            return try await store.write(
                filled.batch,
                BatchWrite(
                    type: "Destination", environment: .development, author: TransactionAuthor("test", origin: .import),
                    moreToCome: more))
        }
        #expect(try await write(first, 1...10, more: true).inserted == 10)
        #expect(try await write(second, 5...15, more: false) == ChangeCounts(inserted: 5, unchanged: 6))
        #expect(try await write(first, 12...20, more: true) == ChangeCounts(inserted: 5, unchanged: 4))
        try await first.endImport(type: "Destination", source: nil)
        #expect(try scratch.records("Destination").count == 20)
        #expect(try scratch.verification().isOK)
    }

    @Test func `kinds of changes have the same numbers in Swift and in C`() {
        let pairs: [(ChangeKind, tide_change_kind)] = [
            (.insert, tide_change_insert), (.update, tide_change_update), (.delete, tide_change_delete),
        ]
        #expect(pairs.count == ChangeKind.allCases.count)
        for (kind, inC) in pairs { #expect(kind.rawValue == Int(inC.rawValue)) }
        // The outbox does not distinguish updates: both kinds are a save.
        #expect(
            ExportKind.save.rawValue == ChangeKind.insert.rawValue && ExportKind.delete.rawValue == ChangeKind.delete.rawValue)
    }
}

extension RecordStore {
    fileprivate func limitValues(to bytes: Int32) throws {
        connection.database.writeWithoutTransaction { db in
            _ = sqlite3_limit(db.sqliteConnection, SQLITE_LIMIT_LENGTH, bytes)
        }
    }
}
