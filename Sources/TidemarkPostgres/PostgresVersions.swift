/// Finds out while a server runs whether a newer version has taken a step after which servers of this version may not go on.
///
/// It costs no round trip. Each request looks its session up, and that statement reads the version as well. Each write of records reads it with
/// its locks, for which such a step waits (``PostgresCloudTables/excludingWriters``).
enum PostgresVersions {
    /// The tables of all components, as this version knows them.
    static let known = [
        PostgresMigrations(PostgresCloudTables.migrations), PostgresAccountStorage.migrations,
        PostgresCredentialTables.migrations, PostgresSubscriptionStorage.migrations,
    ]

    /// SQL of the name of a component that this version may not use any more; NULL where it may use all.
    static let newerComponent: String = {
        let versions = known.map { "WHEN '\($0.component)' THEN \($0.steps.count)" }.joined(separator: " ")
        return "(SELECT min(component) FROM tidemark_migrations WHERE oldest_user > CASE component \(versions) END)"
    }()

    /// SQL of the oldest version whose servers may use the tables of records.
    static let oldestUserOfRecords =
        "coalesce((SELECT max(oldest_user) FROM tidemark_migrations WHERE component = 'records'), 0)"

    /// Makes the error of a server that may not go on.
    ///
    /// - Parameter name: The database's, as messages have it.
    static func refusal(_ component: String, of name: String) -> PostgresError {
        PostgresError(
            .newerVersion,
            "a newer Tidemark has migrated the \(component) of the \(name), and this one may not use them any more. Install the newer one here as well"
        )
    }
}
