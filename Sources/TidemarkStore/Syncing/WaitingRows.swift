import GRDB
import TidemarkModel
import TidemarkSQLite

/// The rows that wait to be sent to the cloud, found from the outbox and from the history that it has not ingested yet. No other
/// rows are read.
///
/// It only reads, so a reader that can't write finds the same rows as the sender.
struct WaitingRows {
    /// The ranges that may have rows to send, by type, in order and without overlaps.
    private var ranges: [Int64: [ClosedRange<Int64>]] = [:]

    /// - Complexity: O(n log n) in the rows of the outbox and the changes that it has not ingested yet.
    init(_ db: Database) throws {
        let sql = """
            SELECT type_id, first_row, last_row FROM tide_outbox WHERE kind = \(ExportKind.save.rawValue)
            UNION ALL SELECT type_id, first_row, last_row FROM (\(Self.news)) WHERE kind <> \(ChangeKind.delete.rawValue)
            ORDER BY 1, 2
            """
        let rows = try Row.fetchCursor(db.cachedStatement(sql: sql))
        while let row = try rows.next() {
            let (type, first, last): (Int64, Int64, Int64) = (
                try row.decode(atIndex: 0), try row.decode(atIndex: 1), try row.decode(atIndex: 2)
            )
            // Rows count from 1.
            guard first > 0, first <= last else { continue }
            ranges[type, default: []].append(first...last)
        }
        ranges = ranges.mapValues(Self.joined)
    }

    /// Joins ranges, which are in the order of their beginnings, so that they do not overlap.
    private static func joined(_ ranges: [ClosedRange<Int64>]) -> [ClosedRange<Int64>] {
        var joined: [ClosedRange<Int64>] = []
        for range in ranges {
            if let last = joined.last, range.lowerBound - 1 <= last.upperBound {
                joined[joined.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                joined.append(range)
            }
        }
        return joined
    }

    /// The changes that the outbox has not ingested yet.
    private static let news = """
        SELECT c.id, c.type_id, c.kind, c.first_row, c.last_row, c.key, c.tag
        FROM tide_changes c CROSS JOIN tide_transactions t ON t.id = c.transaction_id
        WHERE c.id > coalesce((SELECT value FROM tide_sync WHERE key = 'outbox_change'), 0) AND t.origin <> 'cloud'
        """

    /// The number of records of a type that are to be sent, deleted records among them.
    func count(of type: StoredType, _ db: Database) throws -> Int {
        let statement = try db.cachedStatement(
            sql: "SELECT count(*) FROM \"\(type.table)\" WHERE _id BETWEEN ? AND ? AND _pending IS NOT NULL")
        var count = try Self.deletions(of: type, limit: .max, db).count
        for range in ranges[type.id] ?? [] {
            count += try Int.fetchOne(statement, arguments: [range.lowerBound, range.upperBound]) ?? 0
        }
        return count
    }

    /// The rows of a type that are to be sent: refused rows first, then, unless only these are wanted, the others in their order.
    func saves(of type: StoredType, isRefused: Bool, limit: Int, _ db: Database) throws -> [Int64] {
        let refused = """
            SELECT l.row FROM tide_sync_issues l CROSS JOIN "\(type.table)" r ON r._id = l.row
            WHERE l.type_id = ? AND l.kind = \(ExportKind.save.rawValue) AND r._pending IS NOT NULL ORDER BY l.row LIMIT ?
            """
        var rows = try Int64.fetchAll(db.cachedStatement(sql: refused), arguments: [type.id, limit])
        if isRefused { return rows }
        let queued = """
            SELECT r._id FROM "\(type.table)" r WHERE r._id BETWEEN ? AND ? AND r._pending IS NOT NULL
            AND NOT EXISTS (SELECT 1 FROM tide_sync_issues l WHERE l.type_id = ? AND l.row = r._id AND l.kind = \(ExportKind.save.rawValue))
            ORDER BY r._id LIMIT ?
            """
        let statement = try db.cachedStatement(sql: queued)
        for range in ranges[type.id] ?? [] where rows.count < limit {
            rows += try Int64.fetchAll(
                statement, arguments: [range.lowerBound, range.upperBound, type.id, limit - rows.count])
        }
        return rows
    }

    /// The rows of a name that are to be sent: one in each zone that has it.
    static func saves(of key: RecordKey, type: StoredType, _ db: Database) throws -> [Int64] {
        let sql = "SELECT _id FROM \"\(type.table)\" WHERE _key = ? AND _pending IS NOT NULL ORDER BY _zone"
        return try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: [key])
    }

    /// The numbers of the changes that are unsent deletions.
    static func deletions(of type: StoredType, limit: Int, _ db: Database) throws -> [Int64] {
        let sql = """
            SELECT c.id FROM tide_outbox o CROSS JOIN tide_changes c ON c.type_id = o.type_id AND c.first_row = o.first_row
            WHERE o.type_id = ?1 AND o.kind = \(ExportKind.delete.rawValue) AND c.kind = \(ChangeKind.delete.rawValue) AND c.tag IS NOT NULL
            UNION SELECT id FROM (\(news)) WHERE +type_id = ?1 AND kind = \(ChangeKind.delete.rawValue) AND tag IS NOT NULL
            ORDER BY 1 LIMIT ?2
            """
        return try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: [type.id, limit])
    }

    /// As ``deletions(of:limit:_:)``, of one name.
    static func deletions(of key: RecordKey, type: StoredType, _ db: Database) throws -> [Int64] {
        let sql = "SELECT c.id FROM tide_changes c WHERE c.key = ? AND c.type_id = ? AND \(Outbox.isWaitingDeletion)"
        return try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: [key, type.id])
    }
}
