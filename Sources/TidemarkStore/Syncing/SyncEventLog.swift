import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite

extension RecordStore {
    /// Logs an event, or the progress of one that was logged.
    package func note(_ event: ContainerEvent) throws(StoreError) {
        try connection.locked("note an event") { db in
            try db.cachedStatement(
                sql: """
                    INSERT INTO tide_events
                        (identifier, type, start, end, code, reason, records, bytes, conflicts, total_records, total_bytes)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                    ON CONFLICT (identifier) DO UPDATE SET end = excluded.end, code = excluded.code, reason = excluded.reason,
                        records = excluded.records, bytes = excluded.bytes, conflicts = excluded.conflicts,
                        total_records = excluded.total_records, total_bytes = excluded.total_bytes
                    """
            ).execute(arguments: [
                event.id.uuidString, event.kind.rawValue, event.start, event.end, event.failure?.code, event.failure?.reason,
                event.records, event.bytes, event.conflicts, event.totalRecords, event.totalBytes,
            ])
            try db.cachedStatement(sql: "DELETE FROM tide_events WHERE id <= (SELECT max(id) FROM tide_events) - ?")
                .execute(arguments: [Self.eventLimit])
            return ((), .commit)
        }
    }

    /// Ends the events of processes that have ended.
    package func closeEvents() throws(StoreError) {
        try connection.locked("close events") { db in
            try db.execute(
                sql:
                    "UPDATE tide_events SET end = ?, code = ?, reason = 'the process ended before it was done' WHERE end IS NULL",
                arguments: [now(), SyncErrorCode.other])
            return ((), .commit)
        }
    }

    /// The number of events that are kept.
    private static let eventLimit = 10_000
}

/// An event, and its number in the log.
public struct LoggedEvent: Hashable, Sendable {
    /// The event's number in the log, for ``StoreReader/events(after:limit:)``; rises from event to event.
    public let number: Int64
    /// The event itself; as `NSPersistentCloudKitContainer.Event`.
    public let event: ContainerEvent
}

extension StoreReader {
    /// The reason why nothing is sent at all: the last set-up or export, if it has failed. The sync issues have the cloud's errors of
    /// single records.
    public func lastFailure() throws(StoreError) -> ContainerEvent? {
        let last = try read("read the log of events") { db in
            try Int64.fetchOne(
                db, sql: "SELECT max(id) FROM tide_events WHERE end IS NOT NULL AND type IN (?, ?)",
                arguments: [ContainerEvent.Kind.setup.rawValue, ContainerEvent.Kind.export.rawValue])
        }
        guard let last, let event = try events(after: last - 1, limit: Int.max).first?.event else { return nil }
        return event.failure == nil ? nil : event
    }

    /// The events of the synchronisation, oldest first.
    ///
    /// - Parameters:
    ///   - number: The number of an event: only later events are returned.
    ///   - limit: The maximum number of events; the last ones are returned.
    public func events(after number: Int64 = 0, limit: Int = 100) throws(StoreError) -> [LoggedEvent] {
        try read("read the log of events") { db in
            let store = try schema.identity(db, path: container.store(scope).path).history
            let sql = "SELECT * FROM tide_events WHERE id > ? ORDER BY id DESC LIMIT ?"
            return try Row.fetchAll(db, sql: sql, arguments: [number, limit]).reversed().map { row in
                let table = "tide_events"
                let (id, kind): (String, Int) = (try row.stored("identifier", of: table), try row.stored("type", of: table))
                guard let id = UUID(uuidString: id), let kind = ContainerEvent.Kind(rawValue: kind) else {
                    throw StoreError(.corrupt, "tide_events has a row whose identifier or type cannot be one")
                }
                var event = ContainerEvent(id: id, store: store, kind: kind, start: try row.stored("start", of: table))
                event.end = try row.stored("end", of: table)
                let (code, reason): (Int?, String?) = (try row.stored("code", of: table), try row.stored("reason", of: table))
                event.failure = code.map { .init(code: $0, reason: reason ?? "") }
                event.records = try row.stored("records", of: table)
                event.bytes = try row.stored("bytes", of: table)
                event.conflicts = try row.stored("conflicts", of: table)
                event.totalRecords = try row.stored("total_records", of: table)
                event.totalBytes = try row.stored("total_bytes", of: table)
                return LoggedEvent(number: try row.stored("id", of: table), event: event)
            }
        }
    }
}
