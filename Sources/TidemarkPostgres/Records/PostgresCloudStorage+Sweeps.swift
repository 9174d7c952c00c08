import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine

/// The turns of servers to sweep, in the container's row. All times are of the database's clock.
///
/// A time in the future comes from a clock that was set back since. A server whose COMMIT was not answered has lost its turn, and
/// another server may take it some time later.
extension PostgresCloudStorage {
    /// SQL of the time, in microseconds since 1970 UTC. It goes on while the statement waits for the row's lock.
    private static let now = "(extract(epoch FROM clock_timestamp()) * 1000000)::int8"

    package func claimSweep(every period: Duration) async throws(CloudError) -> SweepClaim? {
        let (container, most, silence) = (
            context.container, period.milliseconds * 1_000, SweepClaim.patience.milliseconds * 1_000
        )
        return try await database.write { transaction -> SweepClaim? in
            // A sweep that was begun and not ended is continued.
            let rows = try transaction.query(
                """
                UPDATE tidemark_containers
                SET swept = CASE WHEN sweep_renewed IS NULL THEN \(Self.now) ELSE swept END, sweep_renewed = \(Self.now)
                WHERE number = $1 AND CASE WHEN sweep_renewed IS NULL THEN swept <= \(Self.now) - $2 OR swept > \(Self.now)
                    ELSE sweep_renewed <= \(Self.now) - $3 OR sweep_renewed > \(Self.now) END
                RETURNING sweep_owner, sweep_renewed
                """, container, most, silence)
            guard let row = rows.first else { return nil }
            let last = try row.value(0, as: Data?.self)
            return SweepClaim(last: last.map { String(decoding: $0, as: UTF8.self) }, renewed: try row.value(1))
        }
    }

    package func renewSweep(_ claim: SweepClaim) async throws(CloudError) -> SweepClaim? {
        let container = context.container
        return try await database.write { transaction -> SweepClaim? in
            let rows = try transaction.query(
                """
                UPDATE tidemark_containers SET sweep_renewed = \(Self.now), sweep_owner = $3
                WHERE number = $1 AND sweep_renewed = $2 RETURNING sweep_renewed
                """, container, claim.renewed, claim.last?.key)
            guard let row = rows.first else { return nil }
            return SweepClaim(last: claim.last, renewed: try row.value(0))
        }
    }

    package func endSweep(_ claim: SweepClaim) async throws(CloudError) {
        let container = context.container
        try await database.write { transaction in
            try transaction.enqueue(
                "UPDATE tidemark_containers SET sweep_renewed = NULL, sweep_owner = NULL WHERE number = $1 AND sweep_renewed = $2",
                container, claim.renewed)
        }
    }
}
