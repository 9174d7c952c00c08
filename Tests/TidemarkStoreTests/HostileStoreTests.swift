import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkTransfer

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: what is wrong with a damaged or forged store is reported; it does not make a program crash, hang, or write elsewhere.
/// Method: a good store, one SQL statement, and everything that reads.
@Suite(.timeLimit(.minutes(30))) struct HostileStoreTests {
    /// Two records, of which one was updated.
    private func container() async throws -> Scratch {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "1.png")
        let options = ImportOptions.destination { $0.assetFields = ["image"] }
        try await scratch.importing(
            lines: [#"{"id": "a", "n": 1, "t": "2024-05-01T12:30:00Z", "image": "1.png"}"#, #"{"id": "b", "n": 2}"#], options)
        try await scratch.importing(lines: [#"{"id": "a", "n": 3}"#], options)
        return scratch
    }

    private func execute(_ scratch: Scratch, _ sql: String) throws {
        let store = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try store.inDatabase { db in try db.execute(sql: sql) }
        try store.close()
    }

    /// Replaces a part of a table's definition, as only another program would.
    private func redefine(_ table: String, _ part: String, as other: String) -> String {
        """
        PRAGMA writable_schema = ON;
        UPDATE sqlite_master SET sql = replace(sql, '\(part)', '\(other)') WHERE name = '\(table)';
        PRAGMA writable_schema = RESET;
        """
    }

    /// The result of each reader and writer: an error's code, or "fine".
    private func says(_ scratch: Scratch) async throws -> [String: String] {
        func code(_ body: () async throws -> Void) async -> String {
            do {
                try await body()
                return "fine"
            } catch let error as StoreError {
                return "\(error.code.rawValue): \(error.message)"
            } catch let error as ImportError {
                return "\(error.cause?.code.rawValue ?? error.code.rawValue): \(error.message)"
            } catch {
                return "unexpected \(error)"
            }
        }
        var options = ImportOptions.destination()
        options.isDryRun = true
        let (dry, lines) = (options, [#"{"id": "a", "n": 4}"#, #"{"id": "c", "n": 1}"#])
        return [
            "records": await code { _ = try scratch.records("Destination") },
            "record": await code { _ = try scratch.reader().changes(ofRecord: "a") },
            "transactions": await code {
                for transaction in try scratch.reader().transactions() {
                    _ = Timestamp.text(microseconds: transaction.time)
                    _ = try scratch.reader().changes(ofTransaction: transaction.id)
                }
            },
            "export": await code {
                let container = try ContainerDirectory(openingAt: scratch.container)
                _ = try BulkExport(
                    from: container, type: "Destination", format: .csv, to: .file(scratch["export.csv"]), assets: scratch["files"]
                ).run()
            },
            "verify": await code {
                let problems = try scratch.verification().problems
                if !problems.isEmpty { throw StoreError(.core, problems.map(\.message).joined(separator: "; ")) }
            },
            "rehearsal": await code { try await scratch.importing(lines: lines, dry) },
            "import": await code { try await scratch.importing(lines: lines, .destination()) },
        ]
    }

    struct Damage: CustomTestStringConvertible, Sendable {
        let sql: String
        /// The readers and writers that must report it, and the words.
        let saying: [String]
        let words: String
        var testDescription: String { String(sql.prefix(100)) }
    }

    /// Those that report a key.
    private static let named = ["records", "transactions", "export", "verify"]
    private static let all = ["records", "record", "transactions", "export", "verify", "rehearsal", "import"]

    static let damages: [Damage] = [
        .init(
            sql: "UPDATE tide_changes SET previous = id WHERE kind = 2", saying: ["record", "transactions", "verify"],
            words: "change 3 in tide_changes"),
        .init(
            sql: "UPDATE tide_changes SET previous = 99 WHERE kind = 1", saying: ["record", "verify"],
            words: "change 1 in tide_changes"),
        .init(
            sql: "UPDATE tide_changes SET before = 'x'", saying: ["record", "transactions"], words: "no JSON object in 'before'"),
        .init(
            sql: "UPDATE tide_changes SET first_row = -9223372036854775808 WHERE kind = 1", saying: ["transactions", "verify"],
            words: "change 1 in tide_changes"),
        .init(sql: "UPDATE tide_transactions SET time = -9223372036854775808", saying: [], words: ""),
        .init(sql: "UPDATE Destination SET t = -9223372036854775808, _digest = 0", saying: ["verify"], words: "its digest"),
        .init(
            sql: "UPDATE Destination SET _key = 7 WHERE _id = 1", saying: named,
            words: "key"),
        .init(sql: "UPDATE Destination SET _key = x'00' WHERE _id = 1", saying: named, words: "key"),
        .init(sql: "UPDATE Destination SET _key = x'' WHERE _id = 1", saying: named, words: "key"),
        .init(sql: "UPDATE Destination SET _key = '' WHERE _id = 1", saying: named, words: "key"),
        .init(sql: "UPDATE Destination SET _key = 'x' || char(10) WHERE _id = 2", saying: ["verify"], words: "key"),
        .init(
            sql: "UPDATE Destination SET _key = '8a1f3c77-1b5d-4b8e-8f0a-2e6d9c4b7a12' WHERE _id = 2", saying: ["verify"],
            words: "key"),
        .init(sql: "UPDATE Destination SET _zone = 2 WHERE _id = 2", saying: ["verify"], words: "zone"),
        .init(sql: "UPDATE Destination SET _version = -1 WHERE _id = 2", saying: ["verify"], words: "version"),
        .init(
            sql: "UPDATE tide_transactions SET last_change = 9223372036854775806", saying: ["verify", "rehearsal", "import"],
            words: "tide_transactions cannot have"),
        .init(
            sql: "DELETE FROM tide_transactions", saying: ["verify", "rehearsal", "import"],
            words: "tide_transactions cannot have"),
        .init(sql: "DROP TABLE tide_outbox", saying: all, words: "lacks the table tide_outbox"),
        .init(
            sql: "ALTER TABLE tide_changes DROP COLUMN before", saying: all,
            words: "lacks the column before of the table tide_changes"),
        .init(
            sql: "DELETE FROM tide_meta WHERE key = 'digest_seed'", saying: all,
            words: "lacks its digest"),
        .init(sql: "DROP TABLE Destination", saying: all, words: "lacks the table Destination"),
        .init(
            sql: "ALTER TABLE Destination RENAME TO other; CREATE VIEW Destination AS SELECT * FROM other", saying: all,
            words: "lacks the table Destination"),
        .init(sql: "ALTER TABLE Destination DROP COLUMN n", saying: all, words: "lacks the column n"),
        .init(sql: "UPDATE tide_types SET name = 'x\" y'", saying: all, words: "tide_types has a name that cannot be one"),
        .init(
            sql: "UPDATE tide_types SET table_name = 'sqlite_master'", saying: all,
            words: "tide_types has a name that cannot be one"),
        .init(sql: "UPDATE tide_types SET name_field = 'a\"b'", saying: all, words: "tide_types has a name that cannot be one"),
        .init(
            sql: "UPDATE tide_fields SET column_name = '_key' WHERE name = 'n'", saying: all,
            words: "tide_fields has a field of Destination that cannot be one"),
        .init(
            sql: "UPDATE tide_fields SET name = '\u{212A}', column_name = 'K' WHERE name = 'n'", saying: all,
            words: "tide_fields has a field of Destination that cannot be one"),
        .init(sql: "UPDATE tide_fields SET type = 257 WHERE name = 'n'", saying: all, words: "unknown type 257"),
        .init(sql: "UPDATE tide_fields SET type = -1 WHERE name = 'n'", saying: all, words: "whose type has a wrong form"),
        .init(
            sql: "UPDATE tide_fields SET ordinal = 9223372036854775807 WHERE name = 'n'", saying: all,
            words: "tide_fields has a field of Destination that cannot be one"),
        .init(
            sql: """
                WITH RECURSIVE more (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM more WHERE i < 2000)
                INSERT INTO tide_fields SELECT 1, i, 'g' || i, 'g' || i, 2 FROM more
                """, saying: all, words: "at most 1900 are allowed"),
        .init(
            sql: "UPDATE tide_assets SET media = -1", saying: ["export"], words: "whose media has a wrong form"),
        .init(
            sql: """
                DROP VIEW _Destination;
                CREATE VIEW _Destination AS WITH RECURSIVE e (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM e) SELECT i AS _name FROM e
                """, saying: ["verify"], words: "the view _Destination"),
    ]

    @Test(.timeLimit(.minutes(30)), arguments: damages)
    func `damage to a store is reported, and does not crash`(damage: Damage) async throws {
        let scratch = try await container()
        try execute(scratch, damage.sql)
        let said = try await says(scratch)
        #expect(said.filter { $0.value.hasPrefix("unexpected") } == [:])
        #expect(said.filter { $0.value != "fine" }.keys.sorted() == damage.saying.sorted(), "\(said)")
        for name in damage.saying {
            let text = said[name] ?? ""
            #expect(text.contains(damage.words), "\(name): \(text)")
            // A report has no code of its own.
            #expect(text.hasPrefix(name == "verify" ? "co" : "corrupt"), "\(name): \(text)")
        }
    }

    @Test(
        .timeLimit(.minutes(30)),
        arguments: [
            ("tide_types", "UPDATE tide_types SET name = x'ff00', forgotten_rows = 'x'"),
            ("tide_fields", "UPDATE tide_fields SET ordinal = 'x' || ordinal, type = 'x'"),
            ("tide_transactions", "UPDATE tide_transactions SET time = 'x', author = x'ff', inserted = 1e300"),
            ("tide_changes", "UPDATE tide_changes SET kind = 'x', previous = 'x', first_row = 1.5, last_row = x''"),
            ("Destination", "UPDATE Destination SET _version = 'x', _zone = 'x'"),
            ("Destination", "UPDATE Destination SET n = 'x', t = 1.5, image = 7, _digest = 'x'"),
            ("tide_assets", "UPDATE tide_assets SET size = 'x', media = 'x'"),
        ])
    func `values of wrong types are reported, and do not crash`(table: String, sql: String) async throws {
        let scratch = try await container()
        try execute(scratch, redefine(table, "STRICT", as: "") + redefine(table, "INTEGER NOT NULL", as: "ANY") + sql)
        let said = try await says(scratch)
        #expect(said.filter { $0.value.hasPrefix("unexpected") } == [:])
        #expect(said.contains { $0.value != "fine" }, "\(said)")
    }

    @Test(arguments: ["[7, null, {}]", "7", "[", "{}"])
    func `an invalid list is a problem of its record`(list: String) async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "images", type: .list(of: .asset))])
        try await scratch.importing(lines: [#"{"id": "a", "images": []}"#], .destination { $0.schema = [schema] })
        try execute(scratch, "UPDATE Destination SET images = '\(list)'")
        let problems = try scratch.verification().problems
        #expect(problems.contains { $0.kind == .record && $0.record == "a" })
        let container = try ContainerDirectory(openingAt: scratch.container)
        let export = BulkExport(from: container, type: "Destination", format: .jsonl, to: .file(scratch["export.jsonl"]))
        #expect(try export.run().damaged == ["a"])
        // Accepting the damage does not accept this list: a digest does not make the text a list.
        let store = try RecordStore(container: container)
        let error = await #expect(throws: StoreError.self) { try await store.accept(try await store.damagedRows()) }
        #expect(error?.code == .corrupt)
        #expect(try export.run().damaged == ["a"])
    }

    @Test func `a value that is impossible for its field is damage, even with a matching digest`() async throws {
        let scratch = try Scratch()
        let schema = RecordTypeSchema(name: "Destination", fields: [.init(name: "note", type: .string)])
        try await scratch.importing(
            lines: [#"{"id": "a", "note": "no list"}"#, #"{"id": "b", "note": "[\"x\"]"}"#], .destination { $0.schema = [schema] }
        )
        // The digest covers the type of the field, so the rows get new digests for the other type.
        try execute(scratch, "UPDATE tide_fields SET type = 17 WHERE name = 'note'")
        let container = try ContainerDirectory(openingAt: scratch.container)
        try await RecordStore(container: container).makeDigestsRight(of: "Destination")
        let export = BulkExport(from: container, type: "Destination", format: .jsonl, to: .file(scratch["export.jsonl"]))
        #expect(try export.run().damaged == ["a"])
        #expect(try String(contentsOf: scratch["export.jsonl"], encoding: .utf8).contains(#""note":["x"]"#))
    }

    @Test func `an impossible state of an import is ignored`() async throws {
        let scratch = try await container()
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        let good = ImportPosition(source: "s", offset: 7, counts: ChangeCounts(inserted: 1), read: 1)
        let queue = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try await queue.write { db in try good.store(db) }
        #expect(try await store.importPosition(source: "s") == good)
        for path in ["counts.inserted", "read", "assets.bytes", "offset", "rejectsLength"] {
            try execute(scratch, "UPDATE tide_imports SET state = json_set(state, '$.\(path)', 9223372036854775807)")
            #expect(try await store.importPosition(source: "s") == nil, "\(path)")
            try execute(scratch, "UPDATE tide_imports SET state = json_set(state, '$.\(path)', 1)")
            #expect(try await store.importPosition(source: "s") != nil, "\(path)")
        }
    }

    @Test func `a dry run does not execute SQL from the store`() async throws {
        let scratch = try await container()
        // A definition of two statements; executing it as a text would run both.
        try execute(
            scratch,
            """
            CREATE INDEX evil ON Destination (n);
            PRAGMA writable_schema = ON;
            UPDATE sqlite_master SET sql = sql || '; UPDATE base.tide_zones SET name = ''evil''' WHERE name = 'evil';
            """)
        var options = ImportOptions.destination()
        options.isDryRun = true
        let rehearsal = try await scratch.importing(lines: [#"{"id": "a", "n": 4}"#], options)
        #expect(rehearsal.changes == ChangeCounts(updated: 1))
        let zone = try await scratch.reader().database.read { db in try String.fetchOne(db, sql: "SELECT name FROM tide_zones") }
        #expect(zone == "_defaultZone")
    }

    @Test(arguments: ["../../victim/IMG", "0123456789abcdef0123456789abcdef-8/../../../victim/IMG", "", "/etc/passwd"])
    func `an identifier that is a path is refused`(id: String) async throws {
        let scratch = try await container()
        try scratch.write("precious", to: "victim/IMG.jpg")
        try scratch.write("secret!!", to: "victim/IMG")
        try execute(
            scratch,
            """
            INSERT INTO tide_assets (id, size, media) VALUES ('\(id)', 8, 1);
            UPDATE Destination SET image = '\(id)' WHERE _id = 1;
            """)
        let container = try ContainerDirectory(openingAt: scratch.container)
        // An attacker who writes a path can also write its digest.
        let store = try RecordStore(container: container)
        #expect(try await store.accept(try await store.damagedRows()).count == 1)
        for assets in ["out/x/files", "victim"] {
            let error = #expect(throws: ImportError.self) {
                try FileManager.default.createDirectory(at: scratch["out"], withIntermediateDirectories: true)
                return try BulkExport(
                    from: container, type: "Destination", format: .jsonl, to: .file(scratch["out/export.jsonl"]),
                    assets: scratch[assets]
                ).run()
            }
            #expect(error?.cause?.code == .corrupt)
        }
        #expect(throws: StoreError(.corrupt, "")) { _ = try scratch.reader().asset(id) }
        #expect(try String(contentsOf: scratch["victim/IMG.jpg"], encoding: .utf8) == "precious")
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch["victim"].path).sorted() == ["IMG", "IMG.jpg"])
        #expect(try scratch.verification().problems.contains { $0.kind == .assetMissing && $0.asset == id })
    }

    @Test func `a database that cannot have a log is refused`() throws {
        // A database in memory can't have one, like one on a file system without shared memory.
        try DatabaseQueue().inDatabase { db in
            _ = #expect(throws: StoreError(.cannotCreate, "")) { try DatabaseFormat.useLog(db, path: "store") }
        }
    }

    @Test func `the earliest and the latest time have texts`() {
        #expect(Timestamp.text(microseconds: .min) == "-290308-12-21T19:59:05.224192Z")
        #expect(Timestamp.text(microseconds: .max) == "294247-01-10T04:00:54.775807Z")
    }
}

extension RecordStore {
    /// Gives each row of a type the digest of its values.
    fileprivate func makeDigestsRight(of name: String) throws {
        try connection.locked("make digests right") { db in
            try connection.refreshSchema(db)
            let type = try #require(connection.types.first { $0.name == name })
            let columns = type.fields.map { ", \"\($0.column)\"" }.joined()
            let statement = try db.makeStatement(sql: "SELECT _id, _key, _digest\(columns) FROM \"\(type.table)\"")
            let rows = try Row.fetchCursor(statement)
            var digests: [(row: Int64, digest: Int64)] = []
            while let row = try rows.next() {
                let missing = type.digest.parts(statement, key: 1, digest: 2, fields: 3).missing
                digests.append((row[0], Int64(bitPattern: UInt64(bitPattern: row[2] as Int64) &- missing)))
            }
            for (row, digest) in digests {
                try db.execute(sql: "UPDATE \"\(type.table)\" SET _digest = ? WHERE _id = ?", arguments: [digest, row])
            }
            return ((), .commit)
        }
    }
}
