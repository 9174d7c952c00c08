import Foundation
import TidemarkCloud
import TidemarkCloudEngine

extension PostgresCloudTransaction: IncarnationTransaction {
    func incarnation() throws(CloudError) -> CloudIncarnation {
        try run {
            let sql = "SELECT id, began FROM tidemark_incarnations WHERE container = $1 ORDER BY began DESC LIMIT 1"
            guard let row = try db.query(sql, container).first else {
                throw CloudError(.internalError, "the cloud's database has lost its incarnation")
            }
            let (id, began): (Data, Int64) = (try row.value(0), try row.value(1))
            guard id.count == 16 else {
                throw CloudError(.internalError, "the cloud's database has lost its incarnation")
            }
            return CloudIncarnation(id: id, began: began)
        }
    }

    func beginIncarnation(_ id: Data, at change: Int64) throws(CloudError) {
        // The lock waits for all transactions that give out numbers now. Later ones give out other numbers.
        try run { try lockAll() }
        let last = try highestChange()
        precondition(change > last, "the numbers of changes rise")
        state.hasWritten = true
        try run {
            // No row counts the changes of the public database. Its last change can be read only now, before the next one.
            try db.enqueue(
                "INSERT INTO tidemark_lost_times (container, owner, began, previous) VALUES ($1, $2, $3, $4)", container,
                "".key, change, lastChange(of: ""))
            try db.enqueue(
                "INSERT INTO tidemark_incarnations (container, began, previous, id) VALUES ($1, $2, $3, $4)", container, change,
                last, id)
            state.firstChange = change
        }
    }

    func highestChange() throws(CloudError) -> Int64 {
        let last = try lastChange(of: "")
        return try run {
            let sql = "SELECT coalesce(max(change), 0) FROM tidemark_owners WHERE container = $1"
            return max(last, try db.query(sql, container)[0].value(0))
        }
    }

    func isOfLostTime(_ change: Int64, in owner: String) throws(CloudError) -> Bool {
        try run {
            // Numbers between two incarnations, which no owner has given out.
            let all = PostgresCommand(
                "SELECT EXISTS (SELECT FROM tidemark_incarnations WHERE container = $1 AND previous < $2 AND began > $2)",
                [container, change])
            let own = PostgresCommand(
                """
                SELECT EXISTS (SELECT FROM tidemark_lost_times
                    WHERE container = $1 AND owner = $2 AND previous < $3 AND began > $3)
                """, [container, owner.key, change])
            let counted = PostgresCommand(
                "SELECT coalesce(max(change), 0) FROM tidemark_owners WHERE container = $1 AND owner = $2",
                [container, owner.key])
            let rows = try db.run([all, own, counted])
            if try rows[0][0].value(0) || rows[1][0].value(0) { return true }
            guard !owner.isEmpty else { return false }
            // Since the last incarnation began the owner has changed nothing, so its lost time was not noted.
            let stored: Int64 = try rows[2][0].value(0)
            return try max(stored, context.commonChanges) < change && change < firstChange()
        }
    }

    /// Records which numbers an owner has left out, before its first change in an incarnation.
    ///
    /// - Parameter stored: The number of the last change that the owner has counted.
    func noteLostTime(after stored: Int64, of owner: Data) throws {
        let (first, previous) = (try firstChange(), max(stored, context.commonChanges))
        guard previous < first else { return }
        let sql = """
            INSERT INTO tidemark_lost_times (container, owner, began, previous) VALUES ($1, $2, $3, $4)
            ON CONFLICT (container, owner, began) DO NOTHING
            """
        try db.enqueue(sql, container, owner, first, previous)
    }

    func lives(of zone: StoredZone.ID) throws(CloudError) -> ZoneLives {
        try run {
            let sql = "SELECT remade, purged FROM tidemark_zone_lives WHERE container = $1 AND owner = $2 AND zone = $3"
            guard let row = try db.query(sql, container, zone.owner.key, zone.number).first else { return ZoneLives() }
            return ZoneLives(
                remade: Int(try row.value(0, as: Int64.self)), purged: Int(try row.value(1, as: Int64.self)))
        }
    }

    func setLives(_ lives: ZoneLives, of zone: StoredZone.ID) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_zone_lives (container, owner, zone, remade, purged) VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (container, owner, zone) DO UPDATE SET remade = excluded.remade, purged = excluded.purged
                """
            try db.enqueue(sql, container, key(writing: zone.owner), zone.number, Int64(lives.remade), Int64(lives.purged))
        }
    }

    func writerNonce(of change: Int64, in owner: String) throws(CloudError) -> Data? {
        try run {
            // Writers from the time when the changes of all owners were counted together belong to no owner.
            let key = change <= context.commonChanges ? "".key : owner.key
            let sql = """
                SELECT nonce FROM tidemark_writers WHERE container = $1 AND owner = $2 AND began <= $3 ORDER BY began DESC LIMIT 1
                """
            return try db.query(sql, container, key, change).first?.value(0)
        }
    }

    /// Records that this writer gives out the owner's numbers from now on, in the transaction of its first change.
    ///
    /// Without a new number nothing is recorded. Otherwise the next writer would begin at the same number, and a copy of the
    /// database from before that would have a row for numbers that are given out later.
    ///
    /// - Parameters:
    ///   - number: The last of the numbers that are given out.
    ///   - last: The number before the first of them.
    func noteWriter(upTo number: Int64, after last: Int64, of owner: String) throws {
        guard last < number else { return }
        let insert = """
            INSERT INTO tidemark_writers (container, owner, began, nonce) VALUES ($1, $2, $3, \(Self.nonce(of: "$4")))
            ON CONFLICT DO NOTHING
            """
        try db.enqueue(insert, container, owner.key, last + 1, context.writer)
        let forget = """
            DELETE FROM tidemark_writers WHERE container = $1 AND owner = $2 AND began < (SELECT w.began FROM tidemark_writers w
                WHERE w.container = $1 AND w.owner = $2 ORDER BY w.began DESC LIMIT 1 OFFSET $3)
            """
        try db.enqueue(forget, container, owner.key, Self.writersMost - 1)
        state.noted.insert(owner)
    }

    /// How many writers of an owner are stored. A token of a change by an earlier writer is accepted as it is.
    private static let writersMost: Int64 = 16_384
}
