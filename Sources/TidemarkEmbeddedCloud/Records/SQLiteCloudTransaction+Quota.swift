import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Counts what accounts have stored.
extension SQLiteCloudTransaction {
    static let quotaTables = """
        CREATE TABLE usage (user TEXT PRIMARY KEY, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE reservations (payer TEXT NOT NULL, owner TEXT NOT NULL, digest TEXT NOT NULL, user TEXT NOT NULL,
            bytes INTEGER NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (payer, owner, digest, user)) STRICT, WITHOUT ROWID;

        """

    func used(by user: String) throws(CloudError) -> Int64 {
        try run { try Int64.fetchOne(statement("SELECT bytes FROM usage WHERE user = ?"), arguments: [user]) ?? 0 }
    }

    func addUsed(_ bytes: Int64, by user: String) throws(CloudError) {
        guard bytes != 0 else { return }
        try run {
            let sql = "INSERT INTO usage (user, bytes) VALUES (?1, ?2) ON CONFLICT (user) DO UPDATE SET bytes = bytes + ?2"
            try statement(sql).execute(arguments: [user, bytes])
        }
    }

    // Uploads that have begun

    func reserved(by payer: String) throws(CloudError) -> (bytes: Int64, count: Int) {
        try run {
            let sql = "SELECT coalesce(sum(bytes), 0), count(*) FROM reservations WHERE payer = ?"
            guard let row = try Row.fetchOne(statement(sql), arguments: [payer]) else { return (0, 0) }
            return (row[0], row[1])
        }
    }

    func reservation(_ upload: StoredUpload) throws(CloudError) -> Int64? {
        try run {
            let sql = "SELECT bytes FROM reservations WHERE payer = ? AND owner = ? AND digest = ? AND user = ?"
            return try Int64.fetchOne(
                statement(sql), arguments: [upload.payer, upload.owner, upload.digest, upload.user])
        }
    }

    func reserve(_ bytes: Int64, for upload: StoredUpload, at time: Int64) throws(CloudError) {
        try run {
            let sql = "INSERT OR REPLACE INTO reservations (payer, owner, digest, user, bytes, time) VALUES (?, ?, ?, ?, ?, ?)"
            try statement(sql).execute(arguments: [upload.payer, upload.owner, upload.digest, upload.user, bytes, time])
        }
    }

    func removeReservation(_ upload: StoredUpload) throws(CloudError) {
        try run {
            let sql = "DELETE FROM reservations WHERE payer = ? AND owner = ? AND digest = ? AND user = ?"
            try statement(sql).execute(arguments: [upload.payer, upload.owner, upload.digest, upload.user])
        }
    }

    func reservations(of payer: String?) throws(CloudError) -> [(upload: StoredUpload, time: Int64)] {
        try run {
            let sql = "SELECT payer, owner, digest, user, time FROM reservations WHERE ?1 IS NULL OR payer = ?1"
            return try Row.fetchAll(statement(sql), arguments: [payer]).map {
                (StoredUpload(payer: $0[0], owner: $0[1], digest: $0[2], user: $0[3]), $0[4])
            }
        }
    }

    // Answers

    func forgetAnswers(before time: Int64) throws(CloudError) {
        try run {
            let sql = "SELECT user, sum(\(Self.answerSize)) FROM answers WHERE time < ? GROUP BY user"
            let forgotten = try Row.fetchAll(statement(sql), arguments: [time])
            guard !forgotten.isEmpty else { return }
            try statement("DELETE FROM answers WHERE time < ?").execute(arguments: [time])
            for row in forgotten { try addUsed(-(row[1] as Int64), by: row[0]) }
        }
    }

    /// As ``StoredAnswer/size(_:token:)``.
    private static let answerSize = "length(answer) + length(CAST(token AS BLOB)) + \(StoredAnswer.overhead)"

    // Counting from the beginning

    /// What is stored for each account, counted from the rows. O(records + assets + answers).
    func countUsed() throws(CloudError) -> [String: Int64] {
        try run {
            let record = """
                SELECT CASE z.scope WHEN \(DatabaseScope.public.rawValue) THEN r.created_by ELSE z.owner END, sum(\(StoredCloudRecord.overhead)
                    + length(CAST(r.name AS BLOB)) + length(CAST(r.type AS BLOB)) + coalesce(length(CAST(r.parent AS BLOB)), 0)
                    + length(r.fields))
                FROM records r JOIN zones z ON z.id = r.zone GROUP BY 1
                """
            let asset = "SELECT payer, sum(size + \(StoredUpload.overhead)) FROM assets GROUP BY payer"
            let answer = "SELECT user, sum(\(Self.answerSize)) FROM answers GROUP BY user"
            var used: [String: Int64] = [:]
            for sql in [record, asset, answer] {
                for row in try Row.fetchAll(db, sql: sql) { used[row[0], default: 0] += row[1] as Int64 }
            }
            return used
        }
    }

    func allUsed() throws(CloudError) -> [String: Int64] {
        try run {
            let rows = try Row.fetchAll(db, sql: "SELECT user, bytes FROM usage")
            return Dictionary(uniqueKeysWithValues: rows.map { ($0[0], $0[1]) })
        }
    }

    func replaceUsed(_ used: [String: Int64]) throws(CloudError) {
        try run {
            try db.execute(sql: "DELETE FROM usage")
            for (user, bytes) in used { try addUsed(bytes, by: user) }
        }
    }
}

// What things count against a quota
