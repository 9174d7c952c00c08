import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine

extension SQLiteCloudTransaction: IncarnationTransaction {
    func incarnation() throws(CloudError) -> CloudIncarnation {
        try run {
            let sql = "SELECT id, began FROM incarnations ORDER BY began DESC LIMIT 1"
            guard let row = try Row.fetchOne(statement(sql)), let id = Data.fromDatabaseValue(row[0]), id.count == 16,
                let began = Int64.fromDatabaseValue(row[1])
            else { throw CloudError(.internalError, "the cloud's database has lost its incarnation") }
            return CloudIncarnation(id: id, isFirst: began == 0)
        }
    }

    func beginIncarnation(_ id: Data, at change: Int64) throws(CloudError) {
        let last = try lastChange()
        precondition(change > last, "the numbers of changes rise")
        try run {
            try statement("INSERT INTO incarnations (began, previous, id) VALUES (?, ?, ?)").execute(arguments: [
                change, last, id,
            ])
        }
        try setLastChange(change)
    }

    func isOfLostTime(_ change: Int64) throws(CloudError) -> Bool {
        try run {
            let sql = "SELECT EXISTS (SELECT 1 FROM incarnations WHERE previous < ?1 AND began > ?1)"
            return try Bool.fetchOne(statement(sql), arguments: [change]) ?? false
        }
    }

    func lives(of zone: Int64) throws(CloudError) -> ZoneLives {
        try run {
            let row = try Row.fetchOne(statement("SELECT remade, purged FROM zone_lives WHERE zone = ?"), arguments: [zone])
            return row.map { ZoneLives(remade: $0[0], purged: $0[1]) } ?? ZoneLives()
        }
    }

    func setLives(_ lives: ZoneLives, of zone: Int64) throws(CloudError) {
        try run {
            try statement("INSERT OR REPLACE INTO zone_lives (zone, remade, purged) VALUES (?, ?, ?)").execute(arguments: [
                zone, lives.remade, lives.purged,
            ])
        }
    }

    func writerNonce(of change: Int64) throws(CloudError) -> Data? {
        try run {
            let sql = "SELECT nonce FROM writers WHERE began <= ? ORDER BY began DESC LIMIT 1"
            return try Data.fetchOne(statement(sql), arguments: [change])
        }
    }

    /// Notes that the numbers from now on are given out by this writer. This is done with its first change, in the same transaction.
    ///
    /// Where no number is given out nothing is noted: the next writer would count from the same one, and a copy from before it would have
    /// a row for numbers that are given out later.
    ///
    /// - Parameter number: The last of the numbers that are given out.
    func noteWriter(upTo number: Int64) throws {
        let sql = """
            INSERT OR IGNORE INTO writers (began, nonce) SELECT began, ? FROM
            (SELECT coalesce(max(value), 0) + 1 AS began FROM counters WHERE name = 'change') WHERE began <= ?
            """
        try statement(sql).execute(arguments: [writer, number])
        guard db.changesCount > 0 else { return }
        try statement("DELETE FROM writers WHERE began < (SELECT began FROM writers ORDER BY began DESC LIMIT 1 OFFSET ?)")
            .execute(arguments: [Self.writersMost - 1])
    }

    /// So many writers are known. A token of a change by an earlier one is taken as it is.
    private static let writersMost = 16_384

    static let incarnationTables = """
        CREATE TABLE incarnations (began INTEGER PRIMARY KEY, previous INTEGER NOT NULL, id BLOB NOT NULL) STRICT;
        CREATE TABLE writers (began INTEGER PRIMARY KEY, nonce BLOB NOT NULL UNIQUE) STRICT;
        CREATE TABLE zone_lives (zone INTEGER PRIMARY KEY, remade INTEGER NOT NULL, purged INTEGER NOT NULL) STRICT;

        """

    /// Gives a database its first incarnation, if it has none.
    static func makeIncarnation(_ db: Database, id: Data) throws {
        try db.execute(sql: "INSERT OR IGNORE INTO incarnations (began, previous, id) VALUES (0, 0, ?)", arguments: [id])
    }
}
