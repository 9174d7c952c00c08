import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite

extension RemoteChangeApplier {
    /// Keeps the edits that are reverted.
    private var rejected: RejectedChanges { RejectedChanges(transaction: transaction, zone: zone) }

    /// Reverts a change that the cloud has rejected permanently: the record becomes the cloud's version, and the rejected values are kept.
    mutating func revertRejected(_ item: ExportItem, code: String, reason: String) throws {
        guard let type = transaction.connection.types.first(where: { $0.id == item.key.typeID }) else { return }
        switch item.key.kind {
        case .delete: try revertRejectedDeletion(item, type, code: code, reason: reason)
        case .save:
            try outbox.remove(.save, type: type.id, row: item.key.row)
            // If the record was deleted since, the deletion is sent, and refused, by itself.
            guard let mine = try PendingRow.fetchOne(db, type: type, "_id = ?", arguments: [item.key.row]) else { return }
            guard mine.isPending else { return }
            try rejected.keep(mine, type, code: code, reason: reason)
            guard let tag = mine.tag else { return try delete([mine.id], typeID: type.id) }
            try db.cachedStatement(sql: "UPDATE \"\(type.table)\" SET _pending = NULL WHERE _id = ?").execute(arguments: [mine.id]
            )
            guard let was = try rejected.known(mine, type) else { return try deferredRows.deferUntilReply(mine.name) }
            let edited = mine.edited.map { EditTimes($0) }
            try apply(RemoteRecord(name: mine.name, type: type.name, tag: tag, values: was, edited: edited, whole: { Data() }))
        }
    }

    private mutating func revertRejectedDeletion(_ item: ExportItem, _ type: StoredType, code: String, reason: String) throws {
        try outbox.remove(.delete, type: type.id, row: item.key.row)
        guard let deletion = try rejected.waitingDeletion(type, row: item.key.row), let tag = deletion.tag else { return }
        let (was, isIntact) = try rejected.values(before: deletion, type)
        try rejected.refuse(.delete, type, item.name, before: was.mapValues { $0 }, after: [:], code: code, reason: reason)
        // If history only has a damaged version, the look-up brings the cloud's whole one.
        if isIntact {
            try apply(RemoteRecord(name: item.name, type: type.name, tag: tag, values: was, edited: nil, whole: { Data() }))
        }
        // Only the cloud still knows when the fields were edited.
        try deferredRows.deferUntilReply(item.name)
    }
}
