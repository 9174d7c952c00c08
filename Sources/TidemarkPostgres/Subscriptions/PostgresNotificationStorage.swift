import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkModel

/// Stores notifications in PostgreSQL until devices fetch them, from any server.
///
/// The listener wakes waiting requests, also at its pace. Requests that are woken together share a statement.
///
/// A notification is not worth waiting for the disk: after a crash of the database, some from just before it may be missing.
package final class PostgresNotificationStorage: NotificationStorage {
    /// What a look-up finds of a box: its newest wait, and whether it has notifications.
    private struct Found: Sendable {
        let waiter: Data
        let hasAny: Bool
    }

    /// All boxes are one group of look-ups.
    private enum Group { case all }

    private let database: PostgresDatabase
    private let listener: PostgresListener
    private let limits: NotificationLimits
    private let counted: @Sendable (_ put: Int, _ dropped: Int) -> Void
    private let lookUp: PostgresLookUp<Group, NotificationBox, [NotificationBox: Found]>

    /// Makes the storage of a database whose tables a ``PostgresSubscriptionStorage`` has opened.
    ///
    /// - Parameter counted: Receives the number of notifications that were put, and of those that were dropped.
    package init(
        _ database: PostgresDatabase, listener: PostgresListener, limits: NotificationLimits = NotificationLimits(),
        counted: @escaping @Sendable (_ put: Int, _ dropped: Int) -> Void = { _, _ in }
    ) {
        (self.database, self.listener, self.limits, self.counted) = (database, listener, limits, counted)
        lookUp = PostgresLookUp(database) { _, boxes in
            PostgresCommand(
                """
                SELECT w.account, w.token, w.waiter, EXISTS (
                    SELECT FROM notifications AS n WHERE n.account = w.account AND n.token = w.token)
                FROM unnest($1, $2) AS box (account, token) JOIN notification_waits AS w USING (account, token)
                """, [boxes.map(\.account), boxes.map { Data($0.token.utf8) }])
        } found: { rows throws(PostgresError) in
            var found: [NotificationBox: Found] = [:]
            for row in rows {
                let token = String(decoding: try row.value(1, as: Data.self), as: UTF8.self)
                found[NotificationBox(account: try row.value(0), token: token)] = Found(
                    waiter: try row.value(2), hasAny: try row.value(3))
            }
            return found
        }
    }

    package func put(_ frame: [UInt8], for box: NotificationBox) async throws(CloudError) {
        let cost = NotificationLimits.cost(frame)
        guard cost <= limits.sizeOfBox, box.account.isStorable else { return counted(1, 1) }
        let limits = limits
        let dropped = try await database.write { transaction in
            let token = Data(box.token.utf8)
            try transaction.enqueue("SET LOCAL synchronous_commit = off")
            // The oldest notifications make room, since the latest say most.
            let rows = try transaction.run([
                PostgresCommand(
                    """
                    DELETE FROM notifications WHERE account = $1 AND token = $2 AND number IN (
                        SELECT number FROM (
                            SELECT number, row_number() OVER latest AS place, sum(cost) OVER latest AS size
                            FROM notifications WHERE account = $1 AND token = $2 WINDOW latest AS (ORDER BY number DESC)
                        ) AS kept WHERE place >= $3 OR size + $4 > $5)
                    """, [box.account, token, Int64(limits.framesOfBox), Int64(cost), Int64(limits.sizeOfBox)]),
                PostgresCommand(
                    """
                    INSERT INTO notifications (account, token, number, frame, cost)
                    SELECT $1, $2, nextval('notification_numbers'), $3, $4
                    WHERE (SELECT coalesce(sum(cost), 0) FROM notifications WHERE account = $1) + $4 <= $5
                    """, [box.account, token, Data(frame), Int64(cost), Int64(limits.sizeOfAccount)]),
                PostgresCommand(
                    """
                    DELETE FROM notifications WHERE (account, token, number) IN (
                        SELECT account, token, number FROM notifications WHERE at < now() - $1 * interval '1 day'
                        ORDER BY at LIMIT 20 FOR UPDATE SKIP LOCKED)
                    """, [Double(limits.days)]),
            ])
            return rows[0].affected + 1 - rows[1].affected
        }
        counted(1, dropped)
        listener.post(Self.topic(box))
    }

    package func putBack(_ frame: [UInt8], for box: NotificationBox) async throws(CloudError) {
        let (limits, cost) = (limits, NotificationLimits.cost(frame))
        let isKept = try await database.write { transaction in
            // The notification is the oldest of its box again: numbers below zero come before all others.
            try transaction.query(
                """
                INSERT INTO notifications (account, token, number, frame, cost)
                SELECT $1, $2, -nextval('notification_numbers'), $3, $4
                WHERE (SELECT count(*) < $5 AND coalesce(sum(cost), 0) + $4 <= $6
                        FROM notifications WHERE account = $1 AND token = $2)
                    AND (SELECT coalesce(sum(cost), 0) FROM notifications WHERE account = $1) + $4 <= $7
                """, box.account, Data(box.token.utf8), Data(frame), Int64(cost), Int64(limits.framesOfBox),
                Int64(limits.sizeOfBox), Int64(limits.sizeOfAccount)
            ).affected > 0
        }
        if !isKept { counted(0, 1) }
        listener.post(Self.topic(box))
    }

    package func take(for box: NotificationBox) async throws(CloudError) -> [UInt8]? {
        guard box.account.isStorable else { return nil }
        let waiter = Data((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        // The request listens first and looks then, so it misses nothing.
        var changes = listener.changes(of: Self.topic(box)).makeAsyncIterator()
        do throws(CloudError) {
            try await database.write { transaction in
                try transaction.enqueue("SET LOCAL synchronous_commit = off")
                try transaction.enqueue(
                    """
                    INSERT INTO notification_waits (account, token, waiter) VALUES ($1, $2, $3)
                    ON CONFLICT (account, token) DO UPDATE SET waiter = excluded.waiter
                    """, box.account, Data(box.token.utf8), waiter)
            }
            // An earlier wait of the device ends.
            listener.post(Self.topic(box))
            while !Task.isCancelled {
                let found: Found?
                do throws(PostgresError) {
                    found = try await lookUp.found(for: [box], in: .all)[box]
                } catch {
                    throw CloudError(postgres: error)
                }
                guard let found, found.waiter == waiter else { return nil }
                if found.hasAny, let frame = try await takeFirst(of: box, waiter) { return frame }
                guard await changes.next() != nil else { return nil }
            }
            return nil
        } catch {
            if Task.isCancelled, error.code != .networkFailure { return nil }
            throw error
        }
    }

    private func takeFirst(of box: NotificationBox, _ waiter: Data) async throws(CloudError) -> [UInt8]? {
        try await database.write { transaction in
            let rows = try transaction.query(
                """
                DELETE FROM notifications WHERE (account, token, number) = (
                    SELECT account, token, number FROM notifications
                    WHERE account = $1 AND token = $2
                        AND EXISTS (SELECT FROM notification_waits WHERE account = $1 AND token = $2 AND waiter = $3)
                    ORDER BY number LIMIT 1 FOR UPDATE SKIP LOCKED)
                RETURNING frame
                """, box.account, Data(box.token.utf8), waiter)
            return try rows.first.map { [UInt8](try $0.value(0, as: Data.self)) }
        }
    }

    /// The topic of a box. A digest, since a token may have any characters, and any length.
    private static func topic(_ box: NotificationBox) -> String {
        "tidemark.box." + AssetDigest.asset(of: Data("\(box.account)\0\(box.token)".utf8)).digest.prefix(32)
    }
}
