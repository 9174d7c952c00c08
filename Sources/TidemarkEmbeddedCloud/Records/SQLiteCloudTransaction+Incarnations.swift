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
            return CloudIncarnation(id: id, began: began)
        }
    }

    func beginIncarnation(_ id: Data, at change: Int64) throws(CloudError) {
        let last = try highestChange()
        precondition(change > last, "the numbers of changes rise")
        try run {
            // The public database's last change is read from its rows. It is recorded now, because no counter will have it later.
            if let key = try Int64.fetchOne(statement("SELECT number FROM owners WHERE name = ''")) {
                try statement("INSERT INTO lost_times (owner, began, previous) VALUES (?, ?, ?)")
                    .execute(arguments: [key, change, lastChange(of: "")])
            }
            try statement("INSERT INTO incarnations (began, previous, id) VALUES (?, ?, ?)").execute(arguments: [
                change, last, id,
            ])
        }
    }

    func highestChange() throws(CloudError) -> Int64 {
        let last = try lastChange(of: "")
        return try run { try max(last, Int64.fetchOne(statement("SELECT max(change) FROM owners")) ?? 0) }
    }

    func isOfLostTime(_ change: Int64, in owner: String) throws(CloudError) -> Bool {
        try run {
            let (first, key) = (try firstChange(), try number(of: owner))
            // A number that no owner has given out.
            let all = "SELECT EXISTS (SELECT 1 FROM incarnations WHERE previous < ?1 AND began > ?1)"
            if try Bool.fetchOne(statement(all), arguments: [change]) ?? false { return true }
            let own = "SELECT EXISTS (SELECT 1 FROM lost_times WHERE owner = ?1 AND previous < ?2 AND began > ?2)"
            if try Bool.fetchOne(statement(own), arguments: [key, change]) ?? false { return true }
            guard !owner.isEmpty else { return false }
            // The owner has changed nothing since the last incarnation began, so its lost numbers are not recorded yet.
            let stored = try Int64.fetchOne(statement("SELECT change FROM owners WHERE number = ?"), arguments: [key]) ?? 0
            return max(stored, context.commonChanges) < change && change < first
        }
    }

    /// Records the numbers that an owner skips, before its first change in an incarnation.
    ///
    /// - Parameter stored: The number of the owner's last change.
    func noteLostTime(after stored: Int64, of owner: Int64) throws {
        let (first, previous) = (try firstChange(), max(stored, context.commonChanges))
        guard previous < first else { return }
        try statement("INSERT OR IGNORE INTO lost_times (owner, began, previous) VALUES (?, ?, ?)")
            .execute(arguments: [owner, first, previous])
    }

    func lives(of zone: StoredZone.ID) throws(CloudError) -> ZoneLives {
        try run {
            let row = try Row.fetchOne(
                statement("SELECT remade, purged FROM zone_lives WHERE owner = ? AND zone = ?"),
                arguments: [number(of: zone.owner), zone.number])
            return try row.map { row in
                try ZoneLives(remade: row.decode(atIndex: 0), purged: row.decode(atIndex: 1))
            } ?? ZoneLives()
        }
    }

    func setLives(_ lives: ZoneLives, of zone: StoredZone.ID) throws(CloudError) {
        try run {
            try statement("INSERT OR REPLACE INTO zone_lives (owner, zone, remade, purged) VALUES (?, ?, ?, ?)").execute(
                arguments: [
                    number(writing: zone.owner), zone.number, lives.remade, lives.purged,
                ])
        }
    }

    func writerNonce(of change: Int64, in owner: String) throws(CloudError) -> Data? {
        try run {
            // Writers from the time when all owners shared one counter are stored under the number 0.
            let key = change <= context.commonChanges ? 0 : try number(of: owner)
            let sql = "SELECT nonce FROM writers WHERE owner = ? AND began <= ? ORDER BY began DESC LIMIT 1"
            return try Data.fetchOne(statement(sql), arguments: [key, change])
        }
    }

    /// Records that this writer gives out an owner's numbers from now on. This happens with the writer's first change, in the
    /// same transaction.
    ///
    /// A writer that gives out no number is not recorded. The next writer would begin with the same number, and an older copy of
    /// the database would name the wrong writer for numbers that are given out later.
    ///
    /// - Parameters:
    ///   - number: The last number that is given out.
    ///   - last: The number before the first one that is given out.
    func noteWriter(upTo number: Int64, after last: Int64, of owner: Int64) throws {
        guard last < number else { return }
        try statement("INSERT OR IGNORE INTO writers (owner, began, nonce) VALUES (?, ?, ?)")
            .execute(arguments: [owner, last + 1, context.writer])
        guard db.changesCount > 0 else { return }
        let sql = """
            DELETE FROM writers WHERE owner = ?1
            AND began < (SELECT began FROM writers WHERE owner = ?1 ORDER BY began DESC LIMIT 1 OFFSET ?2)
            """
        try statement(sql).execute(arguments: [owner, Self.writersMost - 1])
    }

    /// The most writers of an owner that are recorded. A token of an earlier writer's change is accepted unchecked.
    private static let writersMost = 16_384

    static let incarnationTables = """
        CREATE TABLE incarnations (began INTEGER PRIMARY KEY, previous INTEGER NOT NULL, id BLOB NOT NULL) STRICT;
        CREATE TABLE lost_times (owner INTEGER NOT NULL, began INTEGER NOT NULL, previous INTEGER NOT NULL,
            PRIMARY KEY (owner, began)) STRICT, WITHOUT ROWID;
        CREATE TABLE writers (owner INTEGER NOT NULL, began INTEGER NOT NULL, nonce BLOB NOT NULL, PRIMARY KEY (owner, began),
            UNIQUE (owner, nonce)) STRICT, WITHOUT ROWID;
        CREATE TABLE zone_lives (owner INTEGER NOT NULL, zone INTEGER NOT NULL, remade INTEGER NOT NULL, purged INTEGER NOT NULL,
            PRIMARY KEY (owner, zone)) STRICT, WITHOUT ROWID;

        """

    /// Gives a database its first incarnation, if it has none.
    static func makeIncarnation(_ db: Database, id: Data) throws {
        try db.execute(sql: "INSERT OR IGNORE INTO incarnations (began, previous, id) VALUES (0, 0, ?)", arguments: [id])
    }
}
