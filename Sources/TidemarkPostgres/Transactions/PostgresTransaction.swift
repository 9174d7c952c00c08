/// A transaction that runs. Only the thread that runs its body may use it, until the body ends.
///
/// Statements that return nothing wait (``enqueue(_:_:)``) until the next that does, or until the commit, and go with it: a transaction
/// takes as many round trips as it has answers to wait for.
package final class PostgresTransaction {
    /// `nil` where all rows were read before: a statement is one too many then.
    private let connection: PostgresConnection?
    private let options: PostgresTransactionOptions
    private let limit: Duration?
    private var pending: [PostgresCommand]
    /// What statements have returned that were sent before the body asked for it. Nothing was written since.
    private var ahead: [PostgresCommand: PostgresRows] = [:]
    /// How many answers it has waited for.
    private(set) var roundTrips = 0
    /// Whether the server knows of the transaction.
    private var hasBegun = false
    /// What has failed first. It decides whether the transaction runs again, whatever the body makes of it.
    private(set) var failure: PostgresError?

    /// Statements that wait at the most.
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

    /// What was read ahead is of no use once something is written.
    private func keepAhead(beside command: PostgresCommand) {
        if !command.sql.hasPrefix("SELECT") { ahead = [:] }
    }

    /// Has a statement wait for the next that is sent. Its failure is thrown there.
    ///
    /// - Throws: `PostgresError` where so many wait that they are sent.
    package func enqueue(_ sql: String, _ parameters: any PostgresParameter...) throws(PostgresError) {
        try enqueue(PostgresCommand(sql, parameters))
    }

    /// Has a statement wait, as ``enqueue(_:_:)`` does.
    package func enqueue(_ command: PostgresCommand) throws(PostgresError) {
        keepAhead(beside: command)
        pending.append(command)
        if pending.count >= Self.pendingLimit { try flush() }
    }

    /// Sends a statement, after those that wait, and ends it after a time. The transaction goes on after that.
    ///
    /// - Returns: The rows that it has found by then, and whether it was ended.
    package func query(
        within time: Duration, _ command: PostgresCommand
    ) throws(PostgresError) -> (rows: [PostgresRow], isCut: Bool) {
        try enqueue("SAVEPOINT tidemark_query")
        // Its conditions differ so much that it is planned for its parameters.
        try enqueue(
            "SELECT set_config('statement_timeout', $1, true), set_config('plan_cache_mode', 'auto', true)",
            "\(max(1, time.milliseconds))")
        // What fails from here on was not caused by what has waited.
        try flush()
        let found: (rows: [PostgresRow], failure: PostgresError?)
        do throws(PostgresError) {
            found = try connected().stream(command)
            if let error = found.failure, error.code != .statementTimeout { throw error }
        } catch {
            failure = error
            throw error
        }
        // That ends the time limit, too.
        if found.failure == nil { try enqueue("ROLLBACK TO tidemark_query") } else { try query("ROLLBACK TO tidemark_query") }
        return (found.rows, found.failure != nil)
    }

    /// Has the transaction run again, from its beginning, since what its body has read is not so any more.
    ///
    /// - Returns: The error for the body to throw.
    package func restart(_ reason: String) -> PostgresError {
        let error = PostgresError(.serialization, reason)
        if failure.map({ $0.code == .constraint }) ?? true { failure = error }
        return error
    }

    /// Sends statements together, after those that wait, and returns the rows of each: one round trip for all of them.
    ///
    /// - Parameter others: Statements that only read, and that the body will send: they go along, and it finds what they have returned,
    ///   unless it has written before. They see what is committed when the commands are done.
    package func run(
        _ commands: [PostgresCommand], ahead others: [PostgresCommand] = []
    ) throws(PostgresError) -> [PostgresRows] {
        for command in commands { keepAhead(beside: command) }
        pending += commands + others
        let rows = try flush().suffix(commands.count + others.count)
        for (command, rows) in zip(others, rows.suffix(others.count)) { ahead[command] = rows }
        return Array(rows.prefix(commands.count))
    }

    /// Has the body send all statements itself.
    func forgetAhead() { ahead = [:] }

    /// Sends what waits.
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
    /// - Throws: `PostgresError`; `commitUnknown` where the connection broke behind COMMIT.
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

    /// A transaction that writes leaves it to the server whether it may: READ WRITE would overrule `default_transaction_read_only`, by which
    /// operators keep a database as it is.
    fileprivate var begin: String { "BEGIN ISOLATION LEVEL \(isolation.rawValue)\(isReadOnly ? " READ ONLY" : "")" }
}
