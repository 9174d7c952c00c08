/// How a database is used.
package struct PostgresConfiguration: Sendable {
    /// Where the database is.
    package var address: PostgresAddress
    /// What the server knows the connections by, where the address has no other name for them.
    package var applicationName = "tidemark"
    /// For each host of the address: how long connecting may take, two seconds at the least, as libpq counts.
    package var connectTimeout = Duration.seconds(5)
    /// How long a statement may run. The connection waits five seconds longer, and then gives it up.
    package var statementTimeout = Duration.seconds(30)
    /// How long a statement may wait for a lock.
    package var lockTimeout = Duration.seconds(10)
    /// Whether statements are prepared once for each connection. A pooler that gives each transaction another connection, such as
    /// PgBouncer in the mode `transaction`, needs `false`; then nothing is kept for a session, and time limits are set in each transaction.
    package var preparesStatements = true
    /// Prepared statements that a connection keeps. The one that was used longest ago makes room.
    package var preparedStatements = 256

    /// Connections at once.
    package var connections = 16
    /// How long a transaction may wait for a connection.
    package var waitLimit = Duration.seconds(10)
    /// A connection that nobody has used for so long is asked whether it still works before it is used.
    package var checkedAfter = Duration.seconds(30)
    /// A connection that nobody has used for so long is closed.
    package var idleLifetime = Duration.seconds(300)
    /// A connection is closed after so long, or up to a tenth earlier: so load spreads over hosts again after one was down.
    package var lifetime = Duration.seconds(1800)

    /// How often a transaction runs at the most.
    package var attempts = 10
    /// After so long a transaction doesn't begin again.
    package var patience = Duration.seconds(10)

    /// Is called with the text of each statement that a connection prepares, or, without prepared statements, executes.
    package var observesStatement: (@Sendable (String) -> Void)?

    package init(_ address: PostgresAddress) { self.address = address }
}

extension Duration {
    /// Whole milliseconds, rounded up.
    var milliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }
}
