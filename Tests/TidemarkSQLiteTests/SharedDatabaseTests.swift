import Foundation
import GRDB
import TestSupport
import Testing

@testable import TidemarkSQLite
@testable import TidemarkStore

/// Goal: writes are moved from the log into the database while nobody waits, so that no write has to do it. Method: the files' sizes and the
/// log's header, which has other numbers once the log has begun anew.
@Suite(.timeLimit(.minutes(30))) struct SharedDatabaseTests {
    private let scratch: Scratch
    private var file: URL { scratch["shared.sqlite"] }
    private static let tables = "CREATE TABLE contents (content BLOB NOT NULL) STRICT"
    /// More than is left in the log.
    private static let much = 5 << 20

    init() throws { scratch = try Scratch() }

    private func opening() throws -> SharedDatabase {
        try SharedDatabase(
            at: file, migrations: FormatMigrations(applicationID: 0x5465_7374, oldest: 1), tables: Self.tables, prepare: { _ in })
    }

    private func write(_ count: Int, to database: SharedDatabase) throws {
        try database.write { db in
            try db.execute(sql: "INSERT INTO contents (content) VALUES (randomblob(?))", arguments: [count])
        }
    }

    private func size(_ suffix: String = "") throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path + suffix)
        return try #require(attributes[.size] as? Int)
    }

    /// What the log's header has for each of its beginnings: two numbers, of which one is random.
    private func salt() throws -> [UInt8] {
        let header = try Data(contentsOf: URL(fileURLWithPath: file.path + "-wal")).prefix(32)
        try #require(header.count == 32)
        return Array(header[16..<24])
    }

    @Test func `what is written is moved into the database when nobody waits`() throws {
        let database = try opening()
        try write(1 << 20, to: database)
        #expect(!database.isWorthResting)
        let before = try size()
        database.rest()
        #expect(try size() == before)

        try write(Self.much, to: database)
        #expect(database.isWorthResting)
        #expect(try size() == before)
        database.rest()
        #expect(!database.isWorthResting)
        #expect(try size() >= before + Self.much)

        // The next write finds nothing to keep in the log.
        let (log, salt) = (try size("-wal"), try salt())
        try write(1 << 10, to: database)
        #expect(try size("-wal") == log)
        #expect(try self.salt() != salt)
        #expect(!database.isWorthResting)
        try write(Self.much, to: database)
        #expect(database.isWorthResting)
        database.rest()
        #expect(!database.isWorthResting)
        let count = try database.reader.read { db in try Int.fetchOne(db, sql: "SELECT sum(length(content)) FROM contents") }
        #expect(count == 2 * Self.much + (1 << 20) + (1 << 10))
    }

    @Test func `nothing is moved while another process writes`() throws {
        let database = try opening()
        try write(Self.much, to: database)
        let before = try size()
        // As in another process: the lock belongs to the opening of its file.
        let other = try StoreLock(at: URL(fileURLWithPath: file.path + "-lock"))
        let isHeld = try other.acquireIfFree()
        try #require(isHeld)
        database.rest()
        #expect(database.isWorthResting)
        #expect(try size() == before)
        other.release()
        database.rest()
        #expect(!database.isWorthResting)
        #expect(try size() >= before + Self.much)
        // It holds the lock no longer than that.
        let isFree = try other.acquireIfFree()
        #expect(isFree)
        other.release()
    }

    @Test func `in memory there is nothing to move`() throws {
        let database = try SharedDatabase(inMemoryWith: Self.tables, prepare: { _ in })
        try write(Self.much, to: database)
        #expect(!database.isWorthResting)
        database.rest()
        let count = try database.reader.read { db in try Int.fetchOne(db, sql: "SELECT sum(length(content)) FROM contents") }
        #expect(count == Self.much)
    }
}
