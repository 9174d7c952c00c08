import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine

/// Counts attempts to sign in for all servers of a database, by the clock of the database.
///
/// A count is not worth waiting for the disk: after a crash of the database, some attempts just before it are not counted.
package struct PostgresSignInRates: SignInRateStorage {
    private let database: PostgresDatabase

    /// Makes the counts of a database whose tables a ``PostgresCredentialStorage`` has opened.
    package init(_ database: PostgresDatabase) { self.database = database }

    package func wait(for names: [SignInRate], at now: Double) async throws(CloudError) -> Double? {
        let names = names.filter { $0.perSecond > 0 }
        guard !names.isEmpty else { return nil }
        return try await database.write { transaction in
            try transaction.enqueue("SET LOCAL synchronous_commit = off")
            try transaction.enqueue(Self.removal)
            for name in names {
                let row = try transaction.query(Self.statement, Self.key(of: name), name.perSecond, name.burst)[0]
                guard try row.value(1) else { return (1 - (try row.value(0) as Double)) / name.perSecond }
            }
            return nil
        }
    }

    /// Forgets the attempts under a name.
    package func forget(_ name: SignInRate) async throws(CloudError) {
        try await database.write { transaction in
            try transaction.enqueue("SET LOCAL synchronous_commit = off")
            try transaction.enqueue("DELETE FROM sign_in_rates WHERE name = $1", Self.key(of: name))
        }
    }

    /// A digest of the name. The name itself is not stored, since it may be a password that somebody typed in the wrong place.
    private static func key(of name: SignInRate) -> Data {
        Data(AssetDigest.asset(of: Data("\(name.kind)\0\(name.name)".utf8)).digest.prefix(32).utf8)
    }

    /// Takes one attempt from those left for a name, if there is one. Attempts become available again with time. Returns the
    /// attempts left, and whether one was taken.
    private static let statement = """
        INSERT INTO sign_in_rates AS rate (name, remaining, was_admitted, at, full_at)
        SELECT $1, $3 - 1, true, now, now + 1 / $2 FROM (SELECT extract(epoch FROM clock_timestamp())::float8 AS now) AS clock
        ON CONFLICT (name) DO UPDATE SET
            remaining = \(left) - CASE WHEN \(left) >= 1 THEN 1 ELSE 0 END,
            was_admitted = \(left) >= 1,
            at = greatest(rate.at, excluded.at),
            full_at = greatest(rate.at, excluded.at) + ($3 + 1 - \(left)) / $2
        RETURNING remaining, was_admitted
        """
    /// The attempts that are left for a name now.
    private static let left = "least($3, rate.remaining + greatest(excluded.at - rate.at, 0) * $2)"

    /// Removes some names whose attempts are all available again.
    private static let removal = """
        DELETE FROM sign_in_rates WHERE name IN (
            SELECT name FROM sign_in_rates WHERE full_at < extract(epoch FROM clock_timestamp())
            ORDER BY full_at LIMIT 20 FOR UPDATE SKIP LOCKED)
        """
}
