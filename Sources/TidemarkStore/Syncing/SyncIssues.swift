import GRDB
import TidemarkModel
public import TidemarkSQLite

/// Why a change has not reached the cloud.
public struct SyncIssue: Hashable, Sendable {
    /// The name of the record type.
    public let type: String
    /// The name of the record.
    public let record: String
    /// Whether the change is a save or a deletion.
    public let kind: ExportKind
    /// The fields of a save whose values the cloud does not have.
    public let fields: [String]
    /// Microseconds since 1970 UTC; when the oldest edit was made that the cloud does not have. `nil` if history does not have it any more.
    public let pendingSince: Int64?
    /// How often the change was refused or held back.
    public let attempts: Int
    /// The code of the error with which the cloud refused the change last, or of the reason why it was held back here: it waits for another
    /// record, or is damaged. `nil` if it was neither refused nor held back.
    public let code: String?
    /// The reason that belongs to `code`, in words for people.
    public let reason: String?
    /// Microseconds since 1970 UTC; when the change was last refused or held back.
    public let lastTry: Int64?
    /// Microseconds since 1970 UTC; when the change is sent again. `nil` with a `code`: it is sent again when the record is changed, or
    /// when the record that it waits for has reached the cloud. `nil` without a `code`: it is sent as soon as its turn comes. `nil` if
    /// ``isAwaitingRetry``.
    public let nextTry: Int64?
    /// The name of the record that has to reach the cloud first.
    public let waitsFor: String?
    /// Whether the change was refused or held back, and waits to be tried again as soon as its turn comes: what was wrong may be over.
    public let isAwaitingRetry: Bool

    /// `next_try` of a change that is tried again as soon as its turn comes.
    fileprivate static let retryTime: Int64 = 0

    /// The reason why a damaged record is not sent, with the remedy.
    static let damageReason = "its values here are not what its digest says; \(StoreError.damageRemedy)"

    static func note(
        _ db: Database, _ key: ExportItem.Key, version: Int64, code: String, reason: String, at time: Int64, nextTry: Int64?,
        waitsFor: String?
    ) throws {
        try db.cachedStatement(
            sql: """
                INSERT INTO tide_sync_issues (type_id, row, kind, version, attempts, code, reason, time, next_try, waits_for)
                VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)
                ON CONFLICT (type_id, row, kind) DO UPDATE SET version = excluded.version, attempts = attempts + 1, code = excluded.code,
                    reason = excluded.reason, time = excluded.time, next_try = excluded.next_try, waits_for = excluded.waits_for
                """
        ).execute(arguments: [key.typeID, key.row, key.kind.rawValue, version, code, reason, time, nextTry, waitsFor])
    }
}

/// The number of changes that are yet to be sent, and their state.
public struct OutboxSummary: Hashable, Sendable {
    /// Changes that wait to be sent, blocked ones among them.
    public var pending = 0
    /// Changes that the cloud has refused, or that wait for a refused one. One that waits to be tried again counts until it was sent.
    public var blocked = 0
    /// The earliest time at which a blocked change is sent again, in microseconds since 1970 UTC; `nil` when none has such a time.
    public var nextTry: Int64?

    /// The summary of an empty outbox.
    public init() {}

    init(_ db: Database, types: [StoredType]) throws {
        let waiting = try WaitingRows(db)
        for type in types { pending += try waiting.count(of: type, db) }
        let sql = "SELECT count(*), min(nullif(next_try, \(SyncIssue.retryTime))) FROM tide_sync_issues"
        guard let row = try Row.fetchOne(db, sql: sql) else { return }
        blocked = try row.decode(atIndex: 0)
        nextTry = try row.decode(atIndex: 1)
    }
}

extension RecordStore {
    /// The number of changes that are to be sent.
    ///
    /// - Complexity: A look at each row that waits.
    package func outbox() throws(StoreError) -> OutboxSummary {
        try connection.locked("look into the outbox") { db in
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            return (try OutboxSummary(db, types: connection.types), .commit)
        }
    }
}

extension StoreReader {
    /// The reasons why records have not reached the cloud: refused records first, then, if wanted, records whose turn has not come.
    ///
    /// - Parameters:
    ///   - record: The name of a record of any type; `nil` for all records.
    ///   - isRefused: Whether only refused changes are returned, and changes that wait for refused ones.
    /// - Complexity: Key look-ups for each entry, and a pass over the outbox, not over the records.
    public func syncIssues(record: String? = nil, isRefused: Bool = false, limit: Int = 1000) throws(StoreError) -> [SyncIssue] {
        try read("read the sync issues") { db in
            var entries: [SyncIssue] = []
            let key = record.map { RecordKey(name: $0) }
            let waiting = try key == nil ? WaitingRows(db) : nil
            for type in try StoredType.fetchAll(db) where entries.count < limit {
                let saves =
                    try key.map { try WaitingRows.saves(of: $0, type: type, db) }
                    ?? waiting?.saves(of: type, isRefused: isRefused, limit: limit - entries.count, db) ?? []
                let save = try db.cachedStatement(
                    sql: """
                        SELECT r._id, r._key, r._version, r._base, r._pending, l.* FROM "\(type.table)" r
                        LEFT JOIN tide_sync_issues l ON l.type_id = ?1 AND l.row = r._id AND l.kind = \(ExportKind.save.rawValue)
                        WHERE r._id = ?2\(isRefused ? " AND l.row IS NOT NULL" : "")
                        """)
                for id in saves.prefix(limit - entries.count) {
                    guard let row = try Row.fetchOne(save, arguments: [type.id, id]),
                        let name = RecordKey.fromDatabaseValue(row[1])?.name
                    else { continue }
                    let fields = type.fields(ofPending: row[4] as DatabaseValue)
                    entries.append(try SyncIssue(row, db, type: type, record: name, kind: .save, fields: fields))
                }
                // Deleted records that the cloud has.
                let deletions =
                    try key.map { try WaitingRows.deletions(of: $0, type: type, db) }
                    ?? WaitingRows.deletions(of: type, limit: isRefused ? .max : limit - entries.count, db)
                let deletion = try db.cachedStatement(
                    sql: """
                        SELECT c.first_row, c.key, c.id, c.id - 1, NULL, l.* FROM tide_changes c
                        LEFT JOIN tide_sync_issues l ON l.type_id = c.type_id AND l.row = c.first_row AND l.kind = \(ExportKind.delete.rawValue)
                        WHERE c.id = ?\(isRefused ? " AND l.row IS NOT NULL" : "")
                        """)
                for id in deletions where entries.count < limit {
                    guard let row = try Row.fetchOne(deletion, arguments: [id]),
                        let name = RecordKey.fromDatabaseValue(row[1])?.name
                    else { continue }
                    entries.append(try SyncIssue(row, db, type: type, record: name, kind: .delete, fields: []))
                }
            }
            return entries
        }
    }

    /// The number of changes that are yet to be sent.
    ///
    /// - Complexity: A look at each waiting row, and at no other.
    public func outbox() throws(StoreError) -> OutboxSummary {
        try read("look into the outbox") { db in try OutboxSummary(db, types: StoredType.fetchAll(db)) }
    }
}

extension SyncIssue {
    fileprivate init(
        _ row: Row, _ db: Database, type: StoredType, record: String, kind: ExportKind, fields: [String]
    ) throws {
        let table = "tide_sync_issues"
        let (version, base): (Int64, Int64?) = (try row.decode(atIndex: 2), try row.decode(atIndex: 3))
        let (nextTry, attempts): (Int64?, Int?) = (try row.stored("next_try", of: table), try row.stored("attempts", of: table))
        let isAwaitingRetry = nextTry == Self.retryTime
        try self.init(
            type: type.name, record: record, kind: kind, fields: fields,
            pendingSince: Self.since(db, version: version, base: base ?? 0), attempts: attempts ?? 0,
            code: row.stored("code", of: table), reason: row.stored("reason", of: table),
            lastTry: row.stored("time", of: table), nextTry: isAwaitingRetry ? nil : nextTry,
            waitsFor: row.stored("waits_for", of: table), isAwaitingRetry: isAwaitingRetry)
    }

    /// The time of the first change after the cloud's version.
    private static func since(_ db: Database, version: Int64, base: Int64) throws -> Int64? {
        var time: Int64?
        try RecordChain(db, row: version).forEach(after: base) { link in
            time = link.time
            return true
        }
        return time
    }
}

extension RecordStore {
    /// Returns the bytes of assets about which no cloud was asked yet.
    ///
    /// - Complexity: O(n) in the assets.
    package nonisolated func pendingBytes() async throws -> Int64 {
        try await readConcurrently("measure what is to be sent") { db in
            try Int64.fetchOne(db, sql: "SELECT coalesce(sum(size), 0) FROM tide_assets WHERE sha256 IS NULL") ?? 0
        }
    }
}

extension RecordStore {
    /// Lets changes that were refused for these reasons be tried again at once. Their sync issues stay until they are sent, or are refused
    /// again.
    package func tryAgain(_ codes: [String]) throws(StoreError) {
        try connection.locked("try again what was refused") { db in
            try connection.refreshSchema(db)
            // Nothing is left to send of a record that was merged into another one, or that the cloud has by now.
            for type in connection.types {
                let sql = """
                    DELETE FROM tide_sync_issues WHERE type_id = ? AND kind = \(ExportKind.save.rawValue) AND NOT EXISTS (
                        SELECT 1 FROM "\(type.table)" r WHERE r._id = tide_sync_issues.row AND r._pending IS NOT NULL)
                    """
                try db.execute(sql: sql, arguments: [type.id])
            }
            let sql = "UPDATE tide_sync_issues SET next_try = \(SyncIssue.retryTime) WHERE code = ? AND waits_for IS NULL"
            for code in codes { try db.execute(sql: sql, arguments: [code]) }
            return ((), .commit)
        }
    }
}
