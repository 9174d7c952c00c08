import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Counts what accounts have stored.
extension SQLiteCloudTransaction {
    static let quotaTables = """
        CREATE TABLE usage (owner INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
        CREATE TABLE reservations (owner INTEGER NOT NULL, asset_owner TEXT NOT NULL, digest TEXT NOT NULL, user TEXT NOT NULL,
            bytes INTEGER NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (owner, asset_owner, digest, user)) STRICT, WITHOUT ROWID;

        """

    func used(by user: String) throws(CloudError) -> Int64 {
        try run { try Int64.fetchOne(statement("SELECT bytes FROM usage WHERE owner = ?"), arguments: [number(of: user)]) ?? 0 }
    }

    func addUsed(_ bytes: Int64, by user: String) throws(CloudError) {
        guard bytes != 0 else { return }
        try run {
            let sql = "INSERT INTO usage (owner, bytes) VALUES (?1, ?2) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + ?2"
            try statement(sql).execute(arguments: [number(writing: user), bytes])
        }
    }

    // Uploads that have begun

    func reserved(by payer: String) throws(CloudError) -> (bytes: Int64, count: Int) {
        try run {
            let sql = "SELECT coalesce(sum(bytes), 0), count(*) FROM reservations WHERE owner = ?"
            guard let row = try Row.fetchOne(statement(sql), arguments: [number(of: payer)]) else { return (0, 0) }
            return (try row.decode(atIndex: 0), try row.decode(atIndex: 1))
        }
    }

    func reservation(_ upload: StoredUpload) throws(CloudError) -> Int64? {
        try run {
            let sql = "SELECT bytes FROM reservations WHERE owner = ? AND asset_owner = ? AND digest = ? AND user = ?"
            return try Int64.fetchOne(
                statement(sql), arguments: [number(of: upload.payer), upload.owner, upload.digest, upload.user])
        }
    }

    func reserve(_ bytes: Int64, for upload: StoredUpload, at time: Int64) throws(CloudError) {
        try run {
            let sql =
                "INSERT OR REPLACE INTO reservations (owner, asset_owner, digest, user, bytes, time) VALUES (?, ?, ?, ?, ?, ?)"
            try statement(sql).execute(
                arguments: [number(writing: upload.payer), upload.owner, upload.digest, upload.user, bytes, time])
        }
    }

    func removeReservation(_ upload: StoredUpload) throws(CloudError) {
        try run {
            let sql = "DELETE FROM reservations WHERE owner = ? AND asset_owner = ? AND digest = ? AND user = ?"
            try statement(sql).execute(arguments: [number(writing: upload.payer), upload.owner, upload.digest, upload.user])
        }
    }

    func reservations(of payer: String?) throws(CloudError) -> [(upload: StoredUpload, time: Int64)] {
        try run {
            guard let payer else {
                let sql =
                    "SELECT o.name, r.asset_owner, r.digest, r.user, r.time FROM reservations r JOIN owners o ON o.number = r.owner"
                return try Row.fetchAll(statement(sql)).map { row in
                    (try Self.upload(row, from: 1, payer: row.decode(atIndex: 0)), try row.decode(Int64.self, atIndex: 4))
                }
            }
            let sql = "SELECT asset_owner, digest, user, time FROM reservations WHERE owner = ?"
            return try Row.fetchAll(statement(sql), arguments: [number(of: payer)]).map { row in
                (try Self.upload(row, from: 0, payer: payer), try row.decode(Int64.self, atIndex: 3))
            }
        }
    }

    /// Reads an upload whose owner, digest and user are in adjacent columns.
    private static func upload(_ row: Row, from index: Int, payer: String) throws -> StoredUpload {
        try StoredUpload(
            payer: payer, owner: row.decode(atIndex: index), digest: row.decode(atIndex: index + 1),
            user: row.decode(atIndex: index + 2))
    }

    // Answers

    func forgetAnswers(of user: String, _ age: AnswerAge) throws(CloudError) -> Int {
        try run {
            // The time of the oldest answer that stays.
            let sql = "SELECT time FROM answers WHERE owner = ? ORDER BY time DESC LIMIT 1 OFFSET ?"
            let owner = try number(writing: user)
            guard let first = try Int64.fetchOne(statement(sql), arguments: [owner, AnswerAge.newest - 1]) else { return 0 }
            return try removeAnswers(of: user, before: min(first, age.start))
        }
    }

    func removeAnswers(of user: String) throws(CloudError) { try run { _ = try removeAnswers(of: user, before: .max) } }

    private func removeAnswers(of user: String, before time: Int64) throws -> Int {
        let arguments: StatementArguments = [try number(writing: user), time]
        let size = "SELECT sum(\(Self.answerSize)) FROM answers WHERE owner = ? AND time < ?"
        guard let bytes = try Int64.fetchOne(statement(size), arguments: arguments) else { return 0 }
        try statement("DELETE FROM answers WHERE owner = ? AND time < ?").execute(arguments: arguments)
        let count = db.changesCount
        try addUsed(-bytes, by: user)
        return count
    }

    func setBackAnswers(of user: String, _ age: AnswerAge) throws(CloudError) {
        try run {
            let owner = try number(writing: user)
            let last = try Int64.fetchOne(statement("SELECT max(time) FROM answers WHERE owner = ?"), arguments: [owner])
            guard let last, last > age.end else { return }
            try statement("UPDATE answers SET time = time - ? WHERE owner = ?").execute(arguments: [last - age.now, owner])
        }
    }

    func usersWithAnswers(_ age: AnswerAge, limit: Int) throws(CloudError) -> [String] {
        try run {
            let sql = """
                SELECT o.name FROM owners o WHERE EXISTS (SELECT 1 FROM answers a WHERE a.owner = o.number AND a.time > ?1)
                    OR EXISTS (SELECT 1 FROM answers a WHERE a.owner = o.number AND a.time < ?2)
                    AND (SELECT 1 FROM answers a WHERE a.owner = o.number LIMIT 1 OFFSET ?3)
                ORDER BY o.number LIMIT ?4
                """
            return try String.fetchAll(statement(sql), arguments: [age.end, age.start, AnswerAge.newest, limit])
        }
    }

    /// As ``StoredAnswer/size(_:token:)``.
    private static let answerSize = "length(answer) + length(CAST(token AS BLOB)) + \(StoredAnswer.overhead)"

    // Counting all rows

    /// Returns the bytes that are stored for each account, counted from the rows. O(records + assets + answers).
    func countUsed() throws(CloudError) -> [String: Int64] {
        try run {
            let record = """
                SELECT CASE o.name WHEN '' THEN r.created_by ELSE o.name END, sum(\(StoredCloudRecord.overhead)
                    + length(CAST(r.name AS BLOB)) + length(CAST(r.type AS BLOB)) + coalesce(length(CAST(r.parent AS BLOB)), 0)
                    + length(r.fields))
                FROM records r JOIN owners o ON o.number = r.owner GROUP BY 1
                """
            let asset = "SELECT payer, sum(size + \(StoredUpload.overhead)) FROM assets GROUP BY payer"
            let answer =
                "SELECT o.name, sum(\(Self.answerSize)) FROM answers a JOIN owners o ON o.number = a.owner GROUP BY a.owner"
            var used: [String: Int64] = [:]
            for sql in [record, asset, answer] {
                for row in try Row.fetchAll(db, sql: sql) {
                    try used[row.decode(String.self, atIndex: 0), default: 0] += row.decode(Int64.self, atIndex: 1)
                }
            }
            return used
        }
    }

    func allUsed() throws(CloudError) -> [String: Int64] {
        try run {
            let rows = try Row.fetchAll(db, sql: "SELECT o.name, u.bytes FROM usage u JOIN owners o ON o.number = u.owner")
            return try rows.reduce(into: [:]) { used, row in
                try used[row.decode(String.self, atIndex: 0)] = row.decode(Int64.self, atIndex: 1)
            }
        }
    }

    func replaceUsed(_ used: [String: Int64]) throws(CloudError) {
        try run {
            try checkWritesAll()
            try db.execute(sql: "DELETE FROM usage")
            for (user, bytes) in used { try addUsed(bytes, by: user) }
        }
    }
}

// SQL for the bytes that rows count against a quota
