import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkSQLite

/// Goal: an error of the disk is told with its file, and not as damage. Method: databases that can only be read, and errors as SQLite makes
/// them; `errors_test.c` has a file whose reads fail.
@Suite(.timeLimit(.minutes(30))) struct ReadErrorTests {
    private let scratch = try! Scratch()

    private func made() throws -> String {
        let path = scratch["a.sqlite"].path
        let queue = try DatabaseQueue(path: path)
        try queue.write { db in try db.execute(sql: "CREATE TABLE t (a)") }
        try queue.close()
        return path
    }

    @Test func `a database that can only be read is told with its file`() throws {
        let path = try made()
        var configuration = Configuration()
        configuration.readonly = true
        let queue = try DatabaseQueue(path: path, configuration: configuration)
        let error = #expect(throws: StoreError.self) {
            try queue.read { db in
                do {
                    try db.execute(sql: "INSERT INTO t VALUES (1)")
                } catch {
                    throw StoreError(error, doing: "save", with: path)
                }
            }
        }
        #expect(error?.code == .io)
        #expect(error?.message.contains("the database \(path), or the log beside it, could be opened for reading only") == true)
    }

    @Test func `a file that can't be made durable is told with its name`() {
        // Of a pipe nothing can be made durable.
        let pipe = Pipe()
        let error = #expect(throws: StoreError.self) {
            try DurableFile.synchronize(pipe.fileHandleForWriting, path: "a place")
        }
        #expect(error?.code == .io && error?.message.hasPrefix("cannot make durable a place: ") == true)
    }

    @Test func `damage stays damage where the system could read`() throws {
        let path = try made()
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try file.seek(toOffset: 4096)
        try file.write(contentsOf: Data(repeating: 0xff, count: 4096))
        try file.close()
        let queue = try DatabaseQueue(path: path)
        #expect(throws: DatabaseError.self) {
            try queue.read { db in try db.tellingReadErrors(of: path) { try Row.fetchAll(db, sql: "SELECT * FROM t") } }
        }
    }
}
