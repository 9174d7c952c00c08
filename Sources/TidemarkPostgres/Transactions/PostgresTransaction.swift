/// A transaction that runs. Only the thread that runs its body may use it, until the body ends.
///
/// Statements whose results the body does not need wait (``enqueue(_:_:)``). They are sent together with the next statement that
/// returns rows, or with COMMIT. So a transaction takes one round trip for each answer that it waits for.
package final class PostgresTransaction {
    /// `nil` where all rows were read before. A statement is an error then.
    private let connection: PostgresConnection?
    private let options: PostgresTransactionOptions
    private let limit: Duration?
    private var pending: [PostgresCommand]
    /// Rows of statements that were sent before the body asked for them. A write empties it.
    private var ahead: [PostgresCommand: PostgresRows] = [:]
    /// How many answers it has waited for.
    private(set) var roundTrips = 0
    /// Whether the server knows of the transaction.
    private var hasBegun = false
    /// The first failure. It decides whether the transaction runs again, whatever the body makes of it.
    private(set) var failure: PostgresError?

    /// The most statements that wait.
    private static let pendingLimit = 500

    init(_ connection: PostgresConnection, _ configuration: PostgresConfiguration, _ options: PostgresTransactionOptions) {
        (self.connection, self.options) = (connection, options)
        pending = [PostgresCommand(options.begin)]
        limit = options.statementTimeout.map { $0 + PostgresConnection.grace }
        if !configuration.preparesStatements || options.lockTimeout != nil || options.statementTimeout != nil {
            pending.append(
                PostgresConnection.limits(
                    configuration, statementTimeout: options.statementTimeout, lockTimeout: options.lockTimeout, isLocal: true))
        }
    }

    /// Makes a transaction over rows that were read before. Each statement fails, and is noted as ``failure``.
    init() {
        (connection, options, limit, pending) = (nil, .reading, nil, [])
    }

    /// The database and host, for messages.
    package var name: String { connection?.name ?? "database" }

    private func connected() throws(PostgresError) -> PostgresConnection {
        guard let connection else {
            let error = PostgresError(.statement, "a statement is sent where all rows were read before")
            failure = error
            throw error
        }
        return connection
    }

    /// Sends a statement, after those that wait, and returns its rows.
    ///
    /// - Throws: `PostgresError`, also of a statement that has waited.
    @discardableResult
    package func query(_ sql: String, _ parameters: any PostgresParameter...) throws(PostgresError) -> PostgresRows {
        try query(PostgresCommand(sql, parameters))
    }

    /// Sends a statement, as ``query(_:_:)`` does.
    @discardableResult
    package func query(_ command: PostgresCommand) throws(PostgresError) -> PostgresRows {
        if !ahead.isEmpty {
            if failure == nil, let rows = ahead[command] { return rows }
            keepAhead(beside: command)
        }
        pending.append(command)
        return try flush().last!
    }

    /// Forgets the rows that were read ahead, unless the statement only reads.
    private func keepAhead(beside command: PostgresCommand) {
        if !command.sql.hasPrefix("SELECT") { ahead = [:] }
    }

    /// Adds a statement that is sent with the next one. That one throws its failure.
    ///
    /// - Throws: `PostgresError` if the waiting statements are sent, at ``pendingLimit``.
    package func enqueue(_ sql: String, _ parameters: any PostgresParameter...) throws(PostgresError) {
        try enqueue(PostgresCommand(sql, parameters))
    }

    /// Adds a statement, as ``enqueue(_:_:)`` does.
    package func enqueue(_ command: PostgresCommand) throws(PostgresError) {
        keepAhead(beside: command)
        pending.append(command)
        if pending.count >= Self.pendingLimit { try flush() }
    }

    /// Sends a statement, after those that wait, with a time limit of its own. The transaction goes on after the limit.
    ///
    /// - Returns: The rows that the statement has found within the limit, and whether the limit has ended it.
    package func query(
        within time: Duration, _ command: PostgresCommand
    ) throws(PostgresError) -> (rows: [PostgresRow], isCut: Bool) {
        try enqueue("SAVEPOINT tidemark_query")
        // These statements differ so much in their conditions that each is planned for its parameters.
        try enqueue(
            "SELECT set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'auto', true)",
            "\(max(1, time.milliseconds))")
        // After this, a failure is the statement's own, and not that of a statement that has waited.
        try flush()
        let found: (rows: [PostgresRow], failure: PostgresError?)
        do throws(PostgresError) {
            found = try connected().stream(command)
            if let error = found.failure, error.code != .statementTimeout { throw error }
        } catch {
            failure = error
            throw error
        }
        // The rollback undoes the two settings as well.
        if found.failure == nil { try enqueue("ROLLBACK TO tidemark_query") } else { try query("ROLLBACK TO tidemark_query") }
        return (found.rows, found.failure != nil)
    }

    /// Makes the transaction run again from its beginning, since the rows that its body has read have changed.
    ///
    /// - Returns: The error for the body to throw.
    package func restart(_ reason: String) -> PostgresError {
        let error = PostgresError(.serialization, reason)
        if failure.map({ $0.code == .constraint }) ?? true { failure = error }
        return error
    }

    /// Sends statements together, after those that wait, and returns the rows of each: one round trip for all of them.
    ///
    /// - Parameter others: Reading statements that the body will send later. They go along, and the body gets their rows without
    ///   a round trip, unless it writes before. They see what is committed when the commands are done.
    package func run(
        _ commands: [PostgresCommand], ahead others: [PostgresCommand] = []
    ) throws(PostgresError) -> [PostgresRows] {
        for command in commands { keepAhead(beside: command) }
        pending += commands + others
        let rows = try flush().suffix(commands.count + others.count)
        for (command, rows) in zip(others, rows.suffix(others.count)) { ahead[command] = rows }
        return Array(rows.prefix(commands.count))
    }

    /// Forgets the rows that were read ahead: the body sends all statements itself.
    func forgetAhead() { ahead = [:] }

    /// Sends the statements that wait.
    @discardableResult
    package func flush() throws(PostgresError) -> [PostgresRows] {
        if let failure { throw failure }
        let commands = pending
        pending = []
        hasBegun = true
        roundTrips += 1
        do throws(PostgresError) {
            return try connected().run(commands, within: limit)
        } catch {
            failure = error
            throw error
        }
    }

    /// Commits. A transaction without statements does nothing.
    ///
    /// - Throws: `PostgresError`; `commitUnknown` where the connection broke after COMMIT was sent.
    func commit() throws(PostgresError) {
        if let failure { throw failure }
        guard hasBegun || pending.count > 1 else { return }
        do throws(PostgresError) {
            let connection = try connected()
            try connection.beginCommit()
            pending.append(PostgresCommand("COMMIT"))
            let commands = pending
            pending = []
            hasBegun = true
            let rows: [PostgresRows]
            do throws(PostgresError) {
                rows = try connection.run(commands, within: limit)
            } catch  where !options.isReadOnly && error.leavesCommitOpen(isBroken: connection.isBroken) {
                throw PostgresError(
                    .commitUnknown, "\(error.message). Whether the transaction is committed is not known: send the request again",
                    state: error.state)
            }
            hasBegun = false
            guard rows.last?.tag == "COMMIT" else {
                throw PostgresError(.statement, "the \(connection.name) has rolled a transaction back instead of committing it")
            }
        } catch {
            failure = error
            throw error
        }
    }

    /// Ends a transaction that is not to be committed, or that has read only.
    func end() {
        guard hasBegun, let connection, !connection.isBroken else { return }
        // A connection that can't do so is broken, and the server ends the transaction with it.
        _ = try? connection.run([PostgresCommand("ROLLBACK")])
    }
}

/// How a transaction runs.
package struct PostgresTransactionOptions: Sendable {
    /// Which rows a statement sees.
    package enum Isolation: String, Sendable {
        /// Each statement sees what was committed before it began.
        case readCommitted = "READ COMMITTED"
        /// All statements see what was committed before the first.
        case repeatableRead = "REPEATABLE READ"
        /// As if transactions ran one after the other.
        case serializable = "SERIALIZABLE"
    }

    package var isolation: Isolation
    package var isReadOnly: Bool
    /// How long a statement waits for a lock; `nil` for the configuration's.
    package var lockTimeout: Duration?
    /// How long a statement may run; `nil` for the configuration's.
    package var statementTimeout: Duration?

    package init(
        _ isolation: Isolation, isReadOnly: Bool, lockTimeout: Duration? = nil, statementTimeout: Duration? = nil
    ) {
        (self.isolation, self.isReadOnly) = (isolation, isReadOnly)
        (self.lockTimeout, self.statementTimeout) = (lockTimeout, statementTimeout)
    }

    /// Reads one committed state.
    package static let reading = PostgresTransactionOptions(.repeatableRead, isReadOnly: true)
    /// Writes; the body locks the row that orders its writers first, and each later statement sees what they have committed.
    package static let writing = PostgresTransactionOptions(.readCommitted, isReadOnly: false)

    /// The statement of a writing transaction does not say READ WRITE, which would override `default_transaction_read_only`, by
    /// which operators keep a database as it is.
    fileprivate var begin: String { "BEGIN ISOLATION LEVEL \(isolation.rawValue)\(isReadOnly ? " READ ONLY" : "")" }
}
