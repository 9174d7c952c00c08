import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: a reader sees all commits, whatever files are beside the database, and changes nothing. Method: stores that other
/// processes have written to before they were killed; every byte, attribute and time of their files compared.
@Suite(.timeLimit(.minutes(30))) struct ReadOnlyTests {
    static let probe = Result { try Tool(named: "store-probe") }

    /// The files beside the database.
    enum Beside: String, CaseIterable, CustomTestStringConvertible {
        /// A killed writer's log with committed transactions, and its index.
        case hotLog
        case hotLogWithoutIndex
        /// All commits are in the database.
        case emptyLog, emptyLogWithoutIndex, noLog, nothing
        var testDescription: String { rawValue }
    }

    static let rows = 25

    /// A store with `rows` numbered records, which no process has open.
    private func store(_ beside: Beside) async throws -> Scratch {
        let scratch = try Scratch()
        let isHot = beside == .hotLog || beside == .hotLogWithoutIndex
        let writer = try Self.probe.get().start(
            ["write", scratch.container.path, "--count", "\(Self.rows)", "--stays"] + (isHot ? [] : ["--checkpoints"]))
        _ = try #require(await writer.line())
        await writer.kill()
        let (log, index) = (scratch["Test.tidemark/private.sqlite-wal"], scratch["Test.tidemark/private.sqlite-shm"])
        switch beside {
        case .hotLog, .emptyLog: break
        case .hotLogWithoutIndex, .emptyLogWithoutIndex: try FileManager.default.removeItem(at: index)
        case .noLog: try FileManager.default.removeItem(at: log)
        case .nothing: for file in [log, index] { try FileManager.default.removeItem(at: file) }
        }
        return scratch
    }

    private func setModes(_ scratch: Scratch, folder: mode_t, file: mode_t) throws {
        let url = scratch.container
        for name in try FileManager.default.subpathsOfDirectory(atPath: url.path) + ["."] {
            let path = url.appendingPathComponent(name).path
            var isFolder: ObjCBool = false
            _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
            chmod(path, isFolder.boolValue ? folder : file)
        }
    }

    private func count(_ reader: StoreReader) throws -> Int { try reader.count(type: "Destination") - 1 }

    @Test(arguments: Beside.allCases) func `every reading leaves the files as they are`(beside: Beside) async throws {
        let scratch = try await store(beside)
        let before = try FileState(of: scratch.container)
        for _ in 0..<3 {
            let reader = try scratch.reader()
            #expect(try reader.types().map(\.name) == ["Destination"])
            #expect(try count(reader) == Self.rows)
            #expect(try reader.transactions().count == Self.rows)
            #expect(try reader.changes(ofRecord: "last").count == Self.rows)
            let pinned = try reader.snapshot()
            var names: [String] = []
            try pinned.forEachRecord(RecordQuery(type: "Destination", sortField: "n")) { names.append($0.name) }
            #expect(Set(names).count == Self.rows + 1)
        }
        #expect(try FileState(of: scratch.container) == before)
        #expect(try scratch.verification().problems == [])
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test(arguments: Beside.allCases) func `a store in a read-only folder can be read`(beside: Beside) async throws {
        let scratch = try await store(beside)
        // If this is root, the folder belongs to another user.
        let isRoot = geteuid() == 0
        try setModes(scratch, folder: isRoot ? 0o555 : 0o500, file: isRoot ? 0o444 : 0o400)
        defer { try? setModes(scratch, folder: 0o700, file: 0o600) }
        let before = try FileState(of: scratch.container)
        let result = try await Self.probe.get().run(["read", scratch.container.path] + (isRoot ? ["--as-nobody"] : []))
        #expect(try result.json()["rows"] as? Int == Self.rows, "\(result)")
        #expect(try result.json()["problems"] as? [String] == [])
        #expect(try count(scratch.reader()) == Self.rows)
        #expect(try FileState(of: scratch.container) == before)
    }

    static let refused = [
        "INSERT INTO tide_meta VALUES ('x', 1)", "UPDATE Destination SET n = 0", "DELETE FROM Destination",
        "CREATE TABLE mine (a)", "CREATE INDEX mine ON Destination (n)", "DROP VIEW _Destination", "PRAGMA user_version = 9",
        "REINDEX", "ANALYZE", "PRAGMA query_only = OFF; PRAGMA ignore_check_constraints = ON; UPDATE Destination SET n = 0",
    ]
    /// Statements that SQLite executes without writing what they ask for, or in another way.
    static let harmless = [
        "PRAGMA journal_mode = DELETE", "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA wal_autocheckpoint = 1",
        "PRAGMA locking_mode = EXCLUSIVE; SELECT n FROM Destination", "PRAGMA mmap_size = 1000000; SELECT n FROM Destination",
        "BEGIN IMMEDIATE; COMMIT", "BEGIN EXCLUSIVE; COMMIT", "VACUUM", "PRAGMA optimize", "PRAGMA incremental_vacuum",
        "PRAGMA writable_schema = ON; DELETE FROM sqlite_master", "SELECT n FROM Destination",
    ]

    @Test(arguments: [Beside.hotLog, .hotLogWithoutIndex, .nothing])
    func `SQLite refuses statements that would write`(beside: Beside) async throws {
        let scratch = try await store(beside)
        let before = try FileState(of: scratch.container)
        func run(_ sql: String) throws {
            try scratch.reader().database.unsafeRead { db in try db.execute(sql: sql) }
        }
        for sql in Self.refused {
            let error = #expect(throws: DatabaseError.self, "\(sql)") { try run(sql) }
            #expect(error?.resultCode == .SQLITE_READONLY, "\(sql): \(error.map(String.init(describing:)) ?? "")")
            #expect(try FileState(of: scratch.container) == before, "\(sql)")
        }
        for sql in Self.harmless {
            try? run(sql)
            #expect(try FileState(of: scratch.container) == before, "\(sql)")
        }
        #expect(try count(scratch.reader()) == Self.rows)
    }

    @Test func `rows that exceed the memory are sorted in temporary files`() async throws {
        let scratch = try await store(.hotLog)
        let before = try FileState(of: scratch.container)
        let rows = try scratch.reader().read { db in
            try db.execute(sql: "PRAGMA cache_size = 10")
            let sql = "SELECT a.details || b.details || random() AS t FROM Destination a, Destination b, Destination c ORDER BY t"
            return try String.fetchAll(db, sql: sql).count
        }
        #expect(rows == (Self.rows + 1) * (Self.rows + 1) * (Self.rows + 1))
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test func `reads run side by side`() async throws {
        let scratch = try await store(.emptyLog)
        let reader = try scratch.reader()
        let (here, there) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        /// Ends only when another read is under way.
        @Sendable func meet(_ mine: DispatchSemaphore, _ other: DispatchSemaphore) throws -> Bool {
            try reader.read { db in
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM Destination")
                mine.signal()
                return other.wait(timeout: .now() + 30) == .success
            }
        }
        let met = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                let other = DispatchSemaphore(value: 0)
                nonisolated(unsafe) var isMet = false
                Thread.detachNewThread {
                    isMet = (try? meet(here, there)) ?? false
                    other.signal()
                }
                let isMetHere = (try? meet(there, here)) ?? false
                other.wait()
                continuation.resume(returning: [isMet, isMetHere])
            }
        }
        #expect(met == [true, true])
    }

    // Refused databases

    private func refusal(_ scratch: Scratch) -> StoreError? {
        do {
            _ = try StoreReader(container: ContainerDirectory(openingAt: scratch.container))
            return nil
        } catch {
            return error
        }
    }

    private func execute(_ scratch: Scratch, _ sql: String) throws {
        let queue = try DatabaseQueue(path: scratch["Test.tidemark/private.sqlite"].path)
        try queue.inDatabase { db in try db.execute(sql: sql) }
        try queue.close()
    }

    @Test(arguments: [
        ("PRAGMA user_version = 7", StoreError.Code.newerFormat, "has format 7; this version reads up to"),
        ("PRAGMA user_version = 0", .olderFormat, "has format 0; this version reads from"),
        ("PRAGMA application_id = 12", .notAStore, "no Tidemark store"),
        ("DROP TABLE tide_types", .corrupt, "lacks the table tide_types"),
    ])
    func `a foreign database or another format is refused by name`(sql: String, code: StoreError.Code, words: String) async throws
    {
        let scratch = try await store(.nothing)
        try execute(scratch, sql)
        let before = try FileState(of: scratch.container)
        let error = try #require(refusal(scratch))
        #expect(error.code == code)
        #expect(error.message.contains(words) && error.message.contains("private.sqlite"), "\(error)")
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test func `a store must have the columns that SQLite makes of its tables`() async throws {
        let made = try await DatabaseQueue().write { db in
            try db.execute(sql: StoreFormat.tables)
            return try StoreFormat.columns(db, of: "tide_*")
        }
        #expect(StoreFormat.columns == made)
    }

    @Test func `a file that is no database, and a missing store, are refused`() async throws {
        let scratch = try await store(.nothing)
        let file = scratch["Test.tidemark/private.sqlite"]
        try Data(repeating: 7, count: 40_000).write(to: file)
        #expect(refusal(scratch)?.code == .notAStore)
        try FileManager.default.removeItem(at: file)
        #expect(refusal(scratch)?.code == .notFound)
        try scratch.write(#"{"format": 0}"#, to: "Test.tidemark/container.json")
        #expect(refusal(scratch)?.code == .olderFormat)
        try scratch.write(#"{"format": 9}"#, to: "Test.tidemark/container.json")
        #expect(refusal(scratch)?.code == .newerFormat)
    }

    @Test func `a left rollback journal is reported with its remedy`() async throws {
        let scratch = try await store(.nothing)
        try execute(scratch, "PRAGMA journal_mode = DELETE")
        // The magic number of a journal with an interrupted transaction, and room for its header.
        let magic: [UInt8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]
        try Data(magic + [UInt8](repeating: 0, count: 4088)).write(to: scratch["Test.tidemark/private.sqlite-journal"])
        let before = try FileState(of: scratch.container)
        let error = try #require(refusal(scratch))
        #expect(error.code == .unreadable)
        #expect(error.message.hasSuffix("Open the container for writing once"))
        #expect(try FileState(of: scratch.container) == before)
    }

    @Test func `a store can be opened at a path of any characters`() async throws {
        let scratch = try await store(.hotLog)
        for name in ["a b%20?vfs=unix&mode=rwc#c", "é'\"\\;", "%", "日本"] {
            let moved = scratch[name]
            try FileManager.default.copyItem(at: scratch.container, to: moved)
            #expect(try count(StoreReader(container: ContainerDirectory(openingAt: moved))) == Self.rows)
        }
    }

    @Test func `an index that can't be read is not replaced by reading without it`() async throws {
        let scratch = try await store(.hotLog)
        let index = scratch["Test.tidemark/private.sqlite-shm"]
        // A path that can't be opened as a file, by root either.
        try FileManager.default.removeItem(at: index)
        try FileManager.default.createDirectory(at: index, withIntermediateDirectories: false)
        #expect(refusal(scratch)?.code == .io)
    }
}
