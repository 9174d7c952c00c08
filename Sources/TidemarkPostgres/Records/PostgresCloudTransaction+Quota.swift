import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Counts what accounts have stored.
extension PostgresCloudTransaction {
    func used(by user: String) throws(CloudError) -> Int64 {
        try run {
            try db.query(command(usedBy: user)).first?.value(0) ?? 0
        }
    }

    func addUsed(_ bytes: Int64, by user: String) throws(CloudError) {
        guard bytes != 0 else { return }
        try run {
            let sql = """
                INSERT INTO tidemark_usage AS u (container, owner, bytes) VALUES ($1, $2, $3)
                ON CONFLICT (container, owner) DO UPDATE SET bytes = u.bytes + excluded.bytes
                """
            try db.enqueue(sql, container, key(writing: user), bytes)
        }
    }

    // Uploads that have begun

    func reserved(by payer: String) throws(CloudError) -> (bytes: Int64, count: Int) {
        try run {
            let row = try db.query(command(reservedBy: payer))[0]
            return (try row.value(0), Int(try row.value(1, as: Int64.self)))
        }
    }

    private static let isOfUpload =
        "container = $1 AND owner = $2 AND asset_owner = $3 AND digest = $4 AND account = $5"

    func reservation(_ upload: StoredUpload) throws(CloudError) -> Int64? {
        try run {
            let sql = "SELECT bytes FROM tidemark_reservations WHERE \(Self.isOfUpload)"
            return try db.query(
                sql, container, upload.payer.key, upload.owner.key, upload.digest.key, upload.user.key
            ).first?.value(0)
        }
    }

    func reserve(_ bytes: Int64, for upload: StoredUpload, at time: Int64) throws(CloudError) {
        try run {
            let sql = """
                INSERT INTO tidemark_reservations (container, owner, asset_owner, digest, account, bytes, time)
                VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (container, owner, asset_owner, digest, account)
                DO UPDATE SET bytes = excluded.bytes, time = excluded.time
                """
            try db.enqueue(
                sql, container, key(writing: upload.payer), upload.owner.key, upload.digest.key, upload.user.key, bytes, time)
        }
    }

    func removeReservation(_ upload: StoredUpload) throws(CloudError) {
        try run {
            try db.enqueue(
                "DELETE FROM tidemark_reservations WHERE \(Self.isOfUpload)", container, key(writing: upload.payer),
                upload.owner.key, upload.digest.key, upload.user.key)
        }
    }

    func reservations(of payer: String?) throws(CloudError) -> [(upload: StoredUpload, time: Int64)] {
        try run {
            let columns = "SELECT owner, asset_owner, digest, account, time FROM tidemark_reservations WHERE container = $1"
            let rows =
                if let payer { try db.query("\(columns) AND owner = $2", container, payer.key) } else {
                    try db.query(columns, container)
                }
            return try rows.map {
                let upload = StoredUpload(
                    payer: try $0.text(0), owner: try $0.text(1), digest: try $0.text(2), user: try $0.text(3))
                return (upload, try $0.value(4))
            }
        }
    }

    // Answers

    func forgetAnswers(of user: String, _ age: AnswerAge) throws(CloudError) -> Int {
        try run {
            let oldest = """
                (SELECT least(time, $3) FROM tidemark_answers WHERE container = $1 AND owner = $2
                    ORDER BY time DESC LIMIT 1 OFFSET \(AnswerAge.newest - 1))
                """
            return try removeAnswers(of: user, "AND time < \(oldest)", age.start)
        }
    }

    func removeAnswers(of user: String) throws(CloudError) { try run { _ = try removeAnswers(of: user, "AND time < $3", .max) } }

    private func removeAnswers(of user: String, _ condition: String, _ time: Int64) throws -> Int {
        let sql = """
            WITH gone AS (DELETE FROM tidemark_answers WHERE container = $1 AND owner = $2 \(condition)
                RETURNING \(Self.answerSize) AS size)
            SELECT coalesce(sum(size), 0)::int8, count(*) FROM gone
            """
        let gone = try db.query(sql, container, key(writing: user), time)[0]
        try addUsed(-gone.value(0), by: user)
        return try Int(gone.value(1, as: Int64.self))
    }

    func setBackAnswers(of user: String, _ age: AnswerAge) throws(CloudError) {
        try run {
            let last = "SELECT max(time) FROM tidemark_answers WHERE container = $1 AND owner = $2"
            let sql = """
                UPDATE tidemark_answers SET time = time - (\(last)) + $3
                WHERE container = $1 AND owner = $2 AND (\(last)) > $4
                """
            try db.enqueue(sql, container, key(writing: user), age.now, age.end)
        }
    }

    func usersWithAnswers(_ age: AnswerAge, limit: Int) throws(CloudError) -> [String] {
        try run {
            let sql = """
                SELECT owner FROM tidemark_answers WHERE container = $1 GROUP BY owner
                HAVING count(*) > \(AnswerAge.newest) AND min(time) < $2 OR max(time) > $3 ORDER BY owner LIMIT $4
                """
            return try db.query(sql, container, age.start, age.end, Int64(limit)).map { try $0.text(0) }
        }
    }

    /// As ``StoredAnswer/size(_:token:)``.
    private static let answerSize = "length(answer) + length(token) + \(StoredAnswer.overhead)"

    // Counting from the beginning

    func countUsed() throws(CloudError) -> [String: Int64] {
        try run {
            let record = """
                SELECT CASE WHEN length(r.owner) = 0 THEN r.created_by ELSE r.owner END, sum(\(Self.recordSize))::int8
                FROM tidemark_records r WHERE r.container = $1 GROUP BY 1
                """
            let asset = """
                SELECT payer, sum(size + \(StoredUpload.overhead))::int8 FROM tidemark_assets WHERE container = $1 GROUP BY payer
                """
            let answer = """
                SELECT owner, sum(\(Self.answerSize))::int8 FROM tidemark_answers WHERE container = $1 GROUP BY owner
                """
            var used: [String: Int64] = [:]
            for sql in [record, asset, answer] {
                for row in try db.query(sql, container) { used[try row.text(0), default: 0] += try row.value(1) }
            }
            return used
        }
    }

    func allUsed() throws(CloudError) -> [String: Int64] {
        try run {
            let rows = try db.query("SELECT owner, bytes FROM tidemark_usage WHERE container = $1", container)
            return Dictionary(try rows.map { (try $0.text(0), try $0.value(1)) }) { $0 + $1 }
        }
    }

    func replaceUsed(_ used: [String: Int64]) throws(CloudError) {
        try run {
            try checkWritesAll()
            try db.enqueue("DELETE FROM tidemark_usage WHERE container = $1", container)
            try db.enqueue(
                "INSERT INTO tidemark_usage (container, owner, bytes) SELECT $1, v.* FROM unnest($2, $3) AS v", container,
                used.keys.map(\.key), Array(used.values))
        }
    }
}
