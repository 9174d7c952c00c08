import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

/// Defers, within a transaction, changes from the cloud that could not be applied.
struct DeferredRows {
    private let db: Database
    private let zone: Int64
    /// Whether the changes that come now are the deferred ones.
    private let endsDeferral: Bool
    /// Whether there are deferred records, from before or from now.
    private var isAny: Bool
    /// Whether records have to be looked up.
    private(set) var hasDeferred = false

    init(_ db: Database, zone: Int64, endsDeferral: Bool) throws {
        (self.db, self.zone) = (db, zone)
        self.endsDeferral = endsDeferral
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_deferred WHERE zone = ?)"
        isAny = try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [zone]) ?? true
    }

    /// The reason in `tide_deferred` of a record that was sent and has to be looked up once its request has a reply. It is no deferred
    /// record, and no report names it.
    static let deferralReason = "sent"

    private mutating func add(_ name: String, _ type: String, tag: String?, _ reason: String, _ fields: Data) throws {
        isAny = true
        try db.cachedStatement(
            sql: "INSERT OR REPLACE INTO tide_deferred (zone, name, type, tag, reason, fields) VALUES (?, ?, ?, ?, ?, ?)"
        ).execute(arguments: [zone, name, type, tag, reason, fields])
    }

    mutating func add(_ record: RemoteRecord, _ reason: DeferredRecord.Reason) throws {
        try add(record.name, record.type, tag: record.tag, reason.rawValue, record.whole())
    }

    /// Adds a deletion that is in conflict with an edit.
    mutating func add(deletionOf name: String, type: String, _ reason: DeferredRecord.Reason) throws {
        try add(name, type, tag: nil, reason.rawValue, Data())
    }

    mutating func deferUntilReply(_ name: String) throws {
        hasDeferred = true
        try add(name, "", tag: nil, Self.deferralReason, Data())
    }

    /// Ends the deferral of a record that was deleted in the cloud. A record that waits to be looked up still waits, unless that
    /// was done now.
    static func end(_ name: String, zone: Int64, isLookedUp: Bool = false, _ db: Database) throws {
        let isDeferred = isLookedUp ? "" : " AND reason <> '\(deferralReason)'"
        try db.cachedStatement(sql: "DELETE FROM tide_deferred WHERE zone = ? AND name = ?\(isDeferred)").execute(arguments: [
            zone, name,
        ])
    }

    /// Removes the deferred record of a name: a newer version has come.
    func end(_ name: String) throws {
        guard isAny else { return }
        // A record that waits for a reply stays until it is looked up: a page may have less than the look-up.
        try Self.end(name, zone: zone, isLookedUp: endsDeferral, db)
    }

    /// The reasons of deferred records that end when the cloud accepts a save: a conflict or a deletion that waits for a person, and a deletion
    /// that may be a move.
    private static let supersededReasons = [DeferredRecord.Reason.conflict, .deletion, .move].map { "'\($0.rawValue)'" }.joined(
        separator: ", ")

    /// Removes the deferred version of a record whose save the cloud has accepted: the cloud had that version earlier, and no longer at the save.
    func endSuperseded(_ name: String) throws {
        guard isAny else { return }
        let sql = "DELETE FROM tide_deferred WHERE zone = ? AND name = ? AND reason IN (\(Self.supersededReasons))"
        try db.cachedStatement(sql: sql).execute(arguments: [zone, name])
    }
}
