import Foundation
import GRDB

/// Damages rows of a database as a disk does: its digests stay as they are.
public enum DamagedRows {
    /// Changes a bit in the fields of a record of a cloud's database.
    ///
    /// - Parameter record: The record's name, alone or with its type and a colon before it.
    public static func flip(in database: URL, record: String) throws {
        try run(database) { db in
            guard
                var fields = try Data.fetchOne(
                    db, sql: "SELECT fields FROM records WHERE name = ?1 OR name LIKE '%:' || ?1", arguments: [record])
            else {
                throw CocoaError(.fileReadCorruptFile)
            }
            fields[fields.count - 2] ^= 4
            try db.execute(
                sql: "UPDATE records SET fields = ?1 WHERE name = ?2 OR name LIKE '%:' || ?2", arguments: [fields, record])
        }
    }

    /// Removes the last byte of the fields of a deferred record in a store's database.
    public static func cutDeferredRecord(named name: String, in database: URL) throws {
        try run(database) { db in
            try db.execute(
                sql: "UPDATE tide_deferred SET fields = substr(fields, 1, length(fields) - 1) WHERE name = ?", arguments: [name])
        }
    }

    /// Changes a database by a connection of its own; other processes that have it open are not told.
    public static func run<Result>(_ database: URL, _ body: (Database) throws -> Result) throws -> Result {
        var configuration = Configuration()
        configuration.busyMode = .timeout(10)
        let queue = try DatabaseQueue(path: database.path, configuration: configuration)
        let result = try queue.write(body)
        try queue.close()
        return result
    }
}
