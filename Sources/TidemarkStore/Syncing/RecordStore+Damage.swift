import Foundation
import GRDB
import TidemarkModel
package import TidemarkSQLite

/// Records that are damaged in the cloud.
extension RecordStore {
    /// Notes that the cloud's copies of records are damaged. A record that is here as the cloud had it is sent again, whole.
    ///
    /// - Parameter records: Names, and the tags under which the cloud had them.
    /// - Returns: The number of records that are sent again.
    @discardableResult
    package func noteDamaged(
        _ records: [(name: String, tag: String?)], zone: Int64 = StoreFormat.defaultZone
    ) throws(StoreError) -> Int {
        guard !records.isEmpty else { return 0 }
        return try connection.locked("note what is damaged in the cloud") { db in
            guard try StoreZone.isThere(db, id: zone) else { return (0, .commit) }
            try connection.refreshSchema(db)
            try Outbox(db).ingestHistory()
            let isRefetching = try SyncState(db, zone: zone).isRefetching
            var count = 0
            for record in records {
                let query = "SELECT reason FROM tide_deferred WHERE zone = ? AND name = ?"
                let reason = try String.fetchOne(db.cachedStatement(sql: query), arguments: [zone, record.name])
                // The deferred record has more than the row.
                let others = [
                    DeferredRecord.Reason.damagedInCloud.rawValue, DeferredRecord.Reason.move.rawValue,
                    DeferredRows.deferralReason,
                ]
                let isPartial = reason.map { !others.contains($0) } ?? false
                var typeName = ""
                for type in connection.types {
                    let arguments: StatementArguments = [RecordKey(name: record.name), zone]
                    guard
                        let mine = try PendingRow.fetchOne(db, type: type, "_key = ? AND _zone = ?", arguments: arguments)
                    else { continue }
                    typeName = type.name
                    // The cloud has the record, in whatever state.
                    try SeenRows(db, zone: zone, isRefetching: isRefetching).add(mine.id, type)
                    // The record exists there, and need not be looked for in other zones.
                    if reason == DeferredRecord.Reason.move.rawValue {
                        try db.cachedStatement(
                            sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ? AND code = 'conflict'"
                        ).execute(arguments: [type.id, mine.id])
                    }
                    guard !isPartial, mine.isIntact, mine.tag != nil, mine.tag == record.tag else { continue }
                    try db.cachedStatement(sql: "UPDATE \"\(type.table)\" SET _pending = -1 WHERE _id = ?")
                        .execute(arguments: [mine.id])
                    try db.cachedStatement(sql: "DELETE FROM tide_sync_issues WHERE type_id = ? AND row = ?")
                        .execute(arguments: [type.id, mine.id])
                    try Outbox(db, zone: zone).add(.save, type: type.id, row: mine.id, change: mine.version)
                    count += 1
                }
                guard !isPartial else { continue }
                try db.cachedStatement(
                    sql: "INSERT OR REPLACE INTO tide_deferred (zone, name, type, tag, reason, fields) VALUES (?, ?, ?, ?, ?, ?)"
                ).execute(arguments: [
                    zone, record.name, typeName, record.tag, DeferredRecord.Reason.damagedInCloud.rawValue, Data(),
                ])
            }
            return (count, .commit)
        }
    }

    /// Notes that the cloud's copies of records are whole again.
    package func endDamaged(_ names: some Sequence<String>, zone: Int64 = StoreFormat.defaultZone) throws(StoreError) {
        try connection.locked("note what the cloud has whole again") { db in
            for name in names {
                try db.cachedStatement(
                    sql:
                        "DELETE FROM tide_deferred WHERE zone = ? AND name = ? AND reason = '\(DeferredRecord.Reason.damagedInCloud.rawValue)'"
                ).execute(arguments: [zone, name])
            }
            return ((), .commit)
        }
    }
}
