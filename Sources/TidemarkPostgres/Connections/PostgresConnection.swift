import CPostgres
import Foundation
import TidemarkModel

/// A connection to PostgreSQL, always in libpq's pipeline mode: statements go together, and their results come together.
///
/// One thread at a time uses a connection, and is blocked while it waits. Only ``cancel(_:)`` may be called from any thread.
/// Every wait has a time limit of its own, since a network that swallows all packets reports nothing.
final class PostgresConnection {
    private let raw: OpaquePointer
    private let configuration: PostgresConfiguration
    /// The database and host that it has connected to, for messages.
    let name: String
    /// Whether it is of no use any more.
    private(set) var isBroken = false
    private let use = LockedValue(Use())
    private let cancellation: PostgresCancellation
    private let clock = ContinuousClock()

    private var statements: PreparedStatements

    /// The current use of the connection, by one task.
    private struct Use {
        var number = 0
        var isCommitting = false
        var cancelled: ContinuousClock.Instant?
        /// When the server was last asked to end the statement.
        var asked: ContinuousClock.Instant?
    }

    /// How long the server has to answer that a statement was cancelled.
    private static let cancelLimit = Duration.seconds(3)

    /// The least time between two requests to cancel.
    private static let cancelPause = Duration.milliseconds(500)

    /// How long the connection waits for an answer beyond the time limit of the statement.
    static let grace = Duration.seconds(5)

    // Opening

    /// Connects, which blocks the thread: for each host up to the time limit of the configuration.
    ///
    /// - Throws: `PostgresError` `unreachable`, `refused`, or `unsupported` for a server that Tidemark can't work with.
    static func open(_ configuration: PostgresConfiguration) throws(PostgresError) -> PostgresConnection {
        let connection = try PostgresConnection(connecting: configuration)
        try connection.prepareSession()
        return connection
    }

    private init(connecting configuration: PostgresConfiguration) throws(PostgresError) {
        let address = configuration.address
        var options = [
            "connect_timeout": "\(max(2, (configuration.connectTimeout.milliseconds + 999) / 1000))",
            "fallback_application_name": configuration.applicationName,
            // A host that has lost its power answers nothing: the system has to find out.
            "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "3", "tcp_user_timeout": "30000",
        ]
        options.merge(address.options) { $1 }
        options["client_encoding"] = "UTF8"
        let pairs = options.map { (strdup($0.key), strdup($0.value)) }
        defer { for text in pairs.flatMap({ [$0.0, $0.1] }) { free(text) } }
        let keys = pairs.map { UnsafePointer($0.0) } + [nil]
        let values = pairs.map { UnsafePointer($0.1) } + [nil]
        guard let raw = PQconnectdbParams(keys, values, 0) else {
            throw PostgresError(.unreachable, "cannot connect to the \(address.name): no memory is left")
        }
        guard PQstatus(raw) == CONNECTION_OK else {
            defer { PQfinish(raw) }
            throw PostgresError(
                connectingTo: address.name, PostgresText.line(PQerrorMessage(raw)),
                needsPassword: PQconnectionNeedsPassword(raw) != 0, usedPassword: PQconnectionUsedPassword(raw) != 0)
        }
        func text(_ pointer: UnsafePointer<CChar>?) -> String { pointer.map { String(cString: $0) } ?? "" }
        self.raw = raw
        self.configuration = configuration
        statements = PreparedStatements(capacity: configuration.preparedStatements)
        let host = text(PQhost(raw))
        name = "database '\(text(PQdb(raw)))' at \(host.hasPrefix("/") ? host : "\(host):\(text(PQport(raw)))")"
        cancellation = PostgresCancellation(raw)
        tide_pg_ignore_notices(raw)
    }

    deinit { PQfinish(raw) }

    private func prepareSession() throws(PostgresError) {
        guard PQsetnonblocking(raw, 1) == 0, PQenterPipelineMode(raw) == 1 else { throw lost() }
        guard PQserverVersion(raw) >= 150_000 else {
            throw PostgresError(
                .unsupported, "the \(name) is PostgreSQL \(PQserverVersion(raw) / 10_000); Tidemark needs 15 or newer")
        }
        let encoding = PQparameterStatus(raw, "server_encoding").map { String(cString: $0) } ?? ""
        guard encoding == "UTF8" else {
            throw PostgresError(
                .unsupported,
                "the \(name) has the encoding \(encoding); Tidemark needs UTF8. Create it with createdb -E UTF8 -T template0")
        }
        var commands = [PostgresCommand("SELECT current_setting('synchronous_commit')")]
        if configuration.preparesStatements { commands.append(Self.limits(configuration, isLocal: false)) }
        let setting: String = try run(commands, keepsStatements: false)[0][0].value(0)
        guard setting != "off" else {
            throw PostgresError(
                .unsupported,
                "the \(name) has the setting synchronous_commit = off, which loses acknowledged writes when the server dies. Set it to on for the user or the database"
            )
        }
    }

    /// Returns the statement that sets time limits and the planner's settings, for the session or the transaction.
    ///
    /// - `idle_in_transaction_session_timeout`: a transaction that sends nothing for as long as a statement may run has lost its
    ///   client. The server ends it and frees its locks.
    /// - `enable_seqscan` is off, since each statement of a request has an index, however few rows the planner expects of an
    ///   owner.
    /// - `jit` is off, since no statement runs long enough to be worth compiling.
    /// - `plan_cache_mode` is `force_generic_plan`: planning takes longer than most statements run, and no index suits some
    ///   parameters better than others.
    static func limits(
        _ configuration: PostgresConfiguration, statementTimeout: Duration? = nil, lockTimeout: Duration? = nil, isLocal: Bool
    ) -> PostgresCommand {
        PostgresCommand(
            "SELECT set_config('statement_timeout', $1, $3), set_config('lock_timeout', $2, $3), set_config('idle_in_transaction_session_timeout', $1, $3), set_config('enable_seqscan', 'off', $3), set_config('jit', 'off', $3), set_config('plan_cache_mode', 'force_generic_plan', $3)",
            [
                "\((statementTimeout ?? configuration.statementTimeout).milliseconds)",
                "\((lockTimeout ?? configuration.lockTimeout).milliseconds)", isLocal,
            ])
    }

    // Using and cancelling

    /// Begins a use of the connection.
    ///
    /// - Returns: A number for ``cancel(_:)``.
    func beginUse() -> Int {
        use.withLock { use in
            use = Use(number: use.number + 1)
            return use.number
        }
    }

    /// Ends the use: a later ``cancel(_:)`` with its number does nothing.
    func endUse() { use.withLock { $0.number += 1 } }

    /// Begins the commit of the use, which can't be cancelled from now on: its outcome has to be known.
    ///
    /// - Throws: `PostgresError` `cancelled` where it was cancelled before.
    func beginCommit() throws(PostgresError) {
        let isCancelled = use.withLock { use in
            use.isCommitting = use.cancelled == nil
            return !use.isCommitting
        }
        if isCancelled { throw cancelled() }
    }

    /// Cancels a use, from any thread: the statement that runs fails, and so does the next. The connection is closed after the
    /// use, since the server may act on the request late. A use that commits or has ended is not cancelled.
    func cancel(_ number: Int) {
        let isCancelled = use.withLock { use in
            guard use.number == number, !use.isCommitting, use.cancelled == nil else { return false }
            use.cancelled = clock.now
            use.asked = clock.now
            return true
        }
        if isCancelled { cancellation.request() }
    }

    /// Asks the server again to end the statement of a cancelled use. A request that came before the statement has ended nothing.
    private func askAgainToCancel(_ now: ContinuousClock.Instant) {
        let isDue = use.withLock { use in
            guard let asked = use.asked, now >= asked + Self.cancelPause else { return false }
            use.asked = now
            return true
        }
        if isDue { cancellation.request() }
    }

    private var cancelledAt: ContinuousClock.Instant? {
        use.withLock { $0.cancelled }
    }

    var isCancelled: Bool { use.withLock { $0.cancelled != nil } }

    /// Returns whether the connection is still open, without a round trip. Call it only while nobody uses the connection.
    func isAlive() -> Bool {
        var descriptor = pollfd(fd: PQsocket(raw), events: Int16(POLLIN), revents: 0)
        // On an idle connection there is at most the server's last message and the end of the stream, or a changed setting.
        for _ in 0..<10 where !isBroken {
            guard poll(&descriptor, 1, 0) > 0 else { return true }
            isBroken = PQconsumeInput(raw) == 0 || PQstatus(raw) != CONNECTION_OK
            _ = PQisBusy(raw)
        }
        isBroken = true
        return false
    }

    /// Checks the connection with one round trip.
    func ping() throws(PostgresError) { _ = try run([], within: Self.grace) }

    // Statements

    /// Sends statements together, and returns their results in order. After the first that fails the server skips the others.
    ///
    /// - Parameters:
    ///   - keepsStatements: Whether they are prepared, where the configuration says so.
    ///   - limit: How long all of it may take; `nil` for five seconds more than the time limit of a statement.
    /// - Throws: `PostgresError`.
    func run(
        _ commands: [PostgresCommand], keepsStatements: Bool = true, within limit: Duration? = nil
    ) throws(PostgresError) -> [PostgresRows] {
        var results: [PostgresRows] = []
        results.reserveCapacity(commands.count)
        let failure = try exchange(commands, keepsStatements, within: limit) { results.append($0) }
        if let failure { throw failure }
        return results
    }

    /// Sends statements that only read, outside of a transaction, in one round trip. Returns the rows of each statement.
    func read(_ commands: [PostgresCommand]) throws(PostgresError) -> [PostgresRows] {
        guard !configuration.preparesStatements else { return try run(commands) }
        // No setting outlives a transaction here. The server runs all statements of the pipeline as one transaction, so the
        // limits hold for all of them.
        return Array(try run([Self.limits(configuration, isLocal: true)] + commands).dropFirst())
    }

    /// Sends a statement, and returns its rows, also those that it had found before it failed.
    ///
    /// - Throws: `PostgresError` where the connection breaks.
    func stream(_ command: PostgresCommand) throws(PostgresError) -> (rows: [PostgresRow], failure: PostgresError?) {
        var rows: [PostgresRow] = []
        let failure = try exchange([command], true, isStreamed: true, within: nil) { rows += $0 }
        return (rows, failure)
    }

    /// Sends statements, and receives their results.
    ///
    /// - Parameters:
    ///   - isStreamed: Whether each row comes in a result of its own.
    ///   - take: Is called with each result of a statement.
    /// - Returns: The first failure of a statement.
    /// - Throws: `PostgresError` where the connection breaks.
    private func exchange(
        _ commands: [PostgresCommand], _ keepsStatements: Bool, isStreamed: Bool = false, within limit: Duration?,
        _ take: (PostgresRows) -> Void
    ) throws(PostgresError) -> PostgresError? {
        guard !isBroken else { throw lost() }
        guard cancelledAt == nil else { throw cancelled() }
        let steps = try send(commands, keepsStatements)
        let limit = limit ?? configuration.statementTimeout + Self.grace
        let deadline = clock.now + limit
        var failure: PostgresError?
        do throws(PostgresError) {
            for (number, step) in steps.enumerated() {
                if isStreamed, case .statement = step { PQsetSingleRowMode(raw) }
                var hasResult = false
                // Each step has a result, and the end of its results.
                while let pointer = try next(deadline, limit) {
                    hasResult = true
                    let rows = PostgresRows(pointer)
                    switch PQresultStatus(pointer) {
                    case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_SINGLE_TUPLE: if case .statement = step { take(rows) }
                    case PGRES_PIPELINE_ABORTED: forget(step)
                    default:
                        forget(step)
                        var error = self.error(of: pointer, step)
                        error.skipsNothing = number == steps.count - 1 || tide_pg_ends_session(pointer)
                        if error.endsConnection { isBroken = true }
                        if error.code == .connectionLost { throw error }
                        failure = failure ?? error
                    }
                }
                guard hasResult else { throw lost() }
            }
            guard let end = try next(deadline, limit) else { throw lost() }
            defer { PQclear(end) }
            guard PQresultStatus(end) == PGRES_PIPELINE_SYNC else { throw lost() }
        } catch {
            isBroken = true
            // An error that the server sent before the connection broke says more than the break.
            throw failure ?? error
        }
        return failure
    }

    private enum Step {
        case prepare(PreparedStatements.Statement)
        case deallocate
        /// The statement's text, and whether it was prepared before.
        case statement(String, isPrepared: Bool)
    }

    private func send(_ commands: [PostgresCommand], _ keepsStatements: Bool) throws(PostgresError) -> [Step] {
        var steps: [Step] = []
        for command in commands {
            let isKept = keepsStatements && configuration.preparesStatements
            let isPrepared = statements.contains(.init(command))
            let name = isKept ? try prepare(command, &steps) : nil
            if !isKept { configuration.observesStatement?(command.sql) }
            let isSent = command.withPointers { pointers in
                let (count, formats) = (Int32(pointers.count), [Int32](repeating: 1, count: pointers.count))
                if let name { return PQsendQueryPrepared(raw, name, count, pointers, command.lengths, formats, 1) == 1 }
                return PQsendQueryParams(raw, command.sql, count, command.types, pointers, command.lengths, formats, 1) == 1
            }
            guard isSent else { throw lost() }
            steps.append(.statement(command.sql, isPrepared: isKept && isPrepared))
        }
        guard PQpipelineSync(raw) == 1 else { throw lost() }
        return steps
    }

    /// Returns the name under which a statement is prepared. A statement that is new to the connection is prepared first.
    private func prepare(_ command: PostgresCommand, _ steps: inout [Step]) throws(PostgresError) -> String {
        let statement = PreparedStatements.Statement(command)
        let use = statements.use(statement)
        if let evicted = use.evicted {
            guard PQsendQueryParams(raw, "DEALLOCATE \(evicted)", 0, nil, nil, nil, nil, 1) == 1 else { throw lost() }
            steps.append(.deallocate)
        }
        guard use.isNew else { return use.name }
        configuration.observesStatement?(command.sql)
        guard PQsendPrepare(raw, use.name, command.sql, Int32(command.types.count), command.types) == 1 else { throw lost() }
        steps.append(.prepare(statement))
        return use.name
    }

    /// Forgets a statement that the server has failed to prepare.
    private func forget(_ step: Step) {
        if case .prepare(let statement) = step { statements.forget(statement) }
    }

    // Waiting

    /// The next result; `nil` at the end of a statement's results.
    private func next(_ deadline: ContinuousClock.Instant, _ limit: Duration) throws(PostgresError) -> OpaquePointer? {
        while PQisBusy(raw) != 0 { try wait(deadline, limit) }
        return PQgetResult(raw)
    }

    /// Waits until something can be read, and sends what is left to be sent.
    private func wait(_ deadline: ContinuousClock.Instant, _ limit: Duration) throws(PostgresError) {
        let unsent = PQflush(raw)
        guard unsent >= 0 else { throw lost() }
        let now = clock.now
        guard now < deadline else {
            throw lost("it has not answered for \(limit)")
        }
        if let cancelledAt, now > cancelledAt + Self.cancelLimit { throw cancelled() }
        askAgainToCancel(now)
        var descriptor = pollfd(fd: PQsocket(raw), events: Int16(unsent > 0 ? POLLIN | POLLOUT : POLLIN), revents: 0)
        // The pause is short, so that a cancellation meanwhile is noticed.
        let pause = min(500, now.duration(to: deadline).milliseconds)
        guard poll(&descriptor, 1, Int32(pause)) > 0 else { return }
        guard PQconsumeInput(raw) == 1 else { throw lost() }
    }

    /// Waits for a notification, or for something to read from another descriptor.
    ///
    /// - Returns: The payloads of the notifications that other connections have sent.
    func notifications(besides descriptor: Int32, within limit: Duration) throws(PostgresError) -> [String] {
        var payloads = try received()
        guard payloads.isEmpty else { return payloads }
        var descriptors = [
            pollfd(fd: PQsocket(raw), events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
        ]
        if poll(&descriptors, 2, Int32(clamping: limit.milliseconds)) > 0, descriptors[0].revents != 0 {
            guard PQconsumeInput(raw) == 1 else { throw lost() }
            payloads = try received()
        }
        return payloads
    }

    private func received() throws(PostgresError) -> [String] {
        var payloads: [String] = []
        while let notification = PQnotifies(raw) {
            defer { PQfreemem(notification) }
            if notification.pointee.be_pid != PQbackendPID(raw) { payloads.append(String(cString: notification.pointee.extra)) }
        }
        return payloads
    }

    // Errors

    private func lost(_ reason: String? = nil) -> PostgresError {
        isBroken = true
        let reason = reason ?? PostgresText.line(PQerrorMessage(raw))
        return PostgresError(.connectionLost, "the connection to the \(name) has broken\(reason.isEmpty ? "" : ": \(reason)")")
    }

    private func cancelled() -> PostgresError {
        PostgresError(.cancelled, "the task was cancelled before the \(name) had answered")
    }

    private func pooled(_ state: String) -> PostgresError {
        PostgresError(
            .unsupported,
            "the \(name) has other prepared statements than before: a pooler gives each transaction another connection. Give --database-pooler",
            state: state)
    }

    private func error(of result: OpaquePointer, _ step: Step) -> PostgresError {
        guard let pointer = tide_pg_state(result) else { return lost(PostgresText.line(PQresultErrorMessage(result))) }
        let state = String(cString: pointer)
        let reason = PostgresText.line(tide_pg_message(result))
        var code = PostgresError.code(of: state)
        if code == .statementTimeout, cancelledAt != nil { return cancelled() }
        var text = ""
        switch step {
        case .statement(let sql, let isPrepared):
            text = sql
            // "Cannot set transaction read-write mode during recovery", or "cached plan must not change result type", in the language of
            // the server.
            if state == "0A000" { code = sql.hasPrefix("BEGIN") ? .readOnly : isPrepared ? .staleStatement : code }
            if state == "26000", isPrepared { return pooled(state) }
        case .prepare(let statement):
            // 42P05: a prepared statement of that name exists already.
            if state == "42P05" { return pooled(state) }
            text = statement.sql
        case .deallocate: break
        }
        return PostgresError(
            code, reason, state: state, constraint: tide_pg_constraint(result).map { String(cString: $0) }, in: text, of: name,
            configuration)
    }
}
