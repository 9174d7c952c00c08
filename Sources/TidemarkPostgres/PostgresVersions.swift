/// Tells a running server when a newer version has migrated the database in a way that this version can't work with.
///
/// The check costs no round trip. The statement that looks up a request's session reads the version as well, and so does the
/// statement that locks the owners of a write. Such a migration waits for these locks (``PostgresCloudTables/excludingWriters``).
enum PostgresVersions {
    /// The tables of all components, as this version knows them.
    static let known = [
        PostgresMigrations(PostgresCloudTables.migrations), PostgresAccountStorage.migrations,
        PostgresCredentialTables.migrations, PostgresSubscriptionStorage.migrations,
    ]

    /// SQL that yields the name of a component that this version may not use any more; NULL if it may use all.
    static let newerComponent: String = {
        let versions = known.map { "WHEN '\($0.component)' THEN \($0.steps.count)" }.joined(separator: " ")
        return "(SELECT min(component) FROM tidemark_migrations WHERE oldest_user > CASE component \(versions) END)"
    }()

    /// SQL of the oldest version whose servers may use the tables of records.
    static let oldestUserOfRecords =
        "coalesce((SELECT max(oldest_user) FROM tidemark_migrations WHERE component = 'records'), 0)"

    /// Makes the error of a server that may not go on.
    ///
    /// - Parameter name: The database's name, for messages.
    static func refusal(_ component: String, of name: String) -> PostgresError {
        PostgresError(
            .newerVersion,
            "a newer Tidemark has migrated the \(component) of the \(name), and this one may not use them any more. Install the newer one here as well"
        )
    }
}
