/// How a database is used.
package struct PostgresConfiguration: Sendable {
    /// Where the database is.
    package var address: PostgresAddress
    /// The `application_name` of the connections, unless the address sets one.
    package var applicationName = "tidemark"
    /// How long connecting to each host of the address may take. libpq counts whole seconds, and two at the least.
    package var connectTimeout = Duration.seconds(5)
    /// How long a statement may run. The connection waits five seconds longer for the answer, and then counts as broken.
    package var statementTimeout = Duration.seconds(30)
    /// How long a statement may wait for a lock.
    package var lockTimeout = Duration.seconds(10)
    /// Whether each connection prepares a statement once and keeps it. A pooler that gives each transaction another connection,
    /// such as PgBouncer in the mode `transaction`, needs `false`. Then no setting outlives a transaction, and each transaction
    /// sets its own time limits.
    package var preparesStatements = true
    /// How many prepared statements a connection keeps. After that a new statement replaces the least recently used.
    package var preparedStatements = 256

    /// How many connections may be open at once.
    package var connections = 16
    /// How long a transaction may wait for a connection.
    package var waitLimit = Duration.seconds(10)
    /// A connection that was idle for longer is checked with a round trip before it is used.
    package var checkedAfter = Duration.seconds(30)
    /// A connection that was idle for longer is closed when another connection is given back.
    package var idleLifetime = Duration.seconds(300)
    /// A connection is closed at this age, or up to a tenth earlier. So the load spreads over all hosts again after one was down.
    package var lifetime = Duration.seconds(1800)

    /// How often a transaction runs at the most.
    package var attempts = 10
    /// A transaction does not begin again after this time.
    package var patience = Duration.seconds(10)

    /// Receives the text of each statement that a connection prepares or, without prepared statements, executes.
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
