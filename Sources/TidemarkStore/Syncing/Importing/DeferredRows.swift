import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Defers, within a transaction, changes from the cloud that could not be applied.
struct DeferredRows {
    private let db: Database
    private let zone: Int64
    /// Whether what comes now was deferred before.
    private let endsDeferral: Bool
    /// Some are there, from before or from now.
    private var isAny: Bool
    /// Records that could not be applied, or not wholly.
    private(set) var count = 0
    /// Records are to be looked up.
    private(set) var hasDeferred = false

    init(_ db: Database, zone: Int64, endsDeferral: Bool) throws {
        (self.db, self.zone) = (db, zone)
        self.endsDeferral = endsDeferral
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_deferred WHERE zone = ?)"
        isAny = try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [zone]) ?? true
    }

    /// Stands in `tide_deferred` for a record that was sent and is to be looked up when it is known what became of that. It is no
    /// deferred record, and no report names it.
    static let deferralReason = "sent"

    private mutating func add(_ name: String, _ type: String, tag: String?, _ reason: String, _ fields: Data) throws {
        isAny = true
        try db.cachedStatement(
            sql: "INSERT OR REPLACE INTO tide_deferred (zone, name, type, tag, reason, fields) VALUES (?, ?, ?, ?, ?, ?)"
        ).execute(arguments: [zone, name, type, tag, reason, fields])
    }

    mutating func add(_ record: RemoteRecord, _ reason: DeferredRecord.Reason) throws {
        try add(record.name, record.type, tag: record.tag, reason.rawValue, record.whole())
        count += 1
    }

    /// A deletion that meets an edit, and is left to a person.
    mutating func add(deletionOf name: String, type: String) throws {
        try add(name, type, tag: nil, DeferredRecord.Reason.deletion.rawValue, Data())
        count += 1
    }

    mutating func deferUntilReply(_ name: String) throws {
        hasDeferred = true
        try add(name, "", tag: nil, Self.deferralReason, Data())
    }

    /// Something newer has come under the name.
    func end(_ name: String) throws {
        guard isAny else { return }
        // A record that was deferred waits until it is looked up: a page may say less than that.
        let isDeferred = endsDeferral ? "" : " AND reason <> '\(Self.deferralReason)'"
        try db.cachedStatement(sql: "DELETE FROM tide_deferred WHERE zone = ? AND name = ?\(isDeferred)").execute(arguments: [
            zone, name,
        ])
    }
}
