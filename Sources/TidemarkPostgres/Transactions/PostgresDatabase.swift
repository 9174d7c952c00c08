import TidemarkModel

/// A PostgreSQL database: transactions over a pool of connections.
package final class PostgresDatabase: Sendable {
    package let pool: PostgresPool
    package let configuration: PostgresConfiguration
    /// Sends look-ups of many requests together.
    let batcher: PostgresQueryBatcher
    let metrics: PostgresMetrics
    private let clock = ContinuousClock()
    private static let diskFull = "53100"
    /// When a writing transaction last failed because a disk was full; `nil` after a later commit.
    private let fullAt = LockedValue<ContinuousClock.Instant?>(nil)

    /// Makes a database. It connects with its first transaction.
    package init(_ configuration: PostgresConfiguration, metrics: PostgresMetrics = PostgresMetrics()) {
        (self.configuration, self.metrics) = (configuration, metrics)
        pool = PostgresPool(configuration, metrics: metrics)
        batcher = PostgresQueryBatcher(pool)
    }

    /// Runs a body that only reads, in one read-only transaction.
    ///
    /// - Throws: What the body throws, or `PostgresError`.
    package func read<Answer: Sendable>(
        _ body: @escaping @Sendable (PostgresTransaction) throws -> Answer
    ) async throws -> Answer {
        try await transaction(.reading, body)
    }

    /// Runs a body in a transaction, and commits. When this returns, the writes are durable.
    ///
    /// After a serialisation failure, a deadlock, or a connection that broke before COMMIT was sent, the transaction runs again
    /// from its beginning: ``PostgresConfiguration/attempts`` times at the most, and no later than
    /// ``PostgresConfiguration/patience`` after the first time. So a body may run several times, and must have no effect but its
    /// statements.
    ///
    /// - Throws: What the body throws, and then nothing is written; `PostgresError`. After `commitUnknown` the caller finds the
    ///   outcome by a row that the transaction writes under a unique key, such as the client token of a request.
    package func transaction<Answer: Sendable>(
        _ options: PostgresTransactionOptions = .writing,
        _ body: @escaping @Sendable (PostgresTransaction) throws -> Answer
    ) async throws -> Answer {
        var backoff = Backoff(first: .milliseconds(20), longest: .seconds(1))
        let end = clock.now + configuration.patience
        for attempt in 1... {
            let outcome = await run(options, body)
            switch outcome {
            case .done(let answer): return answer
            case .failed(let error, let mayRunAgain):
                let pause = backoff.fail()
                guard mayRunAgain, attempt < configuration.attempts, clock.now + pause < end else { throw error }
                metrics.rerun()
                do {
                    try await clock.sleep(for: pause)
                } catch {
                    throw PostgresError(.cancelled, "the task was cancelled before the transaction could run again")
                }
            }
        }
        preconditionFailure()
    }

    /// Runs one statement, which is a transaction of its own. It runs once.
    package func query(_ sql: String, _ parameters: any PostgresParameter...) async throws(PostgresError) -> PostgresRows {
        try await query(PostgresCommand(sql, parameters))
    }

    /// Runs one statement, as ``query(_:_:)``.
    func query(_ command: PostgresCommand) async throws(PostgresError) -> PostgresRows { try await run([command])[0] }

    /// Runs statements in one round trip, and once. Together they are a transaction.
    ///
    /// - Parameter limit: How long all of them may take; `nil` for five seconds more than the time limit of a statement.
    func run(_ commands: [PostgresCommand], within limit: Duration? = nil) async throws(PostgresError) -> [PostgresRows] {
        let outcome =
            await use { connection in
                do throws(PostgresError) {
                    return .done(try connection.run(commands, within: limit))
                } catch {
                    return .failed(error, mayRunAgain: false)
                }
            } as Outcome<[PostgresRows]>
        switch outcome {
        case .done(let rows): return rows
        case .failed(let error, mayRunAgain: _): throw error as? PostgresError ?? PostgresError(.statement, "\(error)")
        }
    }

    /// Whether the server's disk is full: a transaction that writes failed so within the last minute, and none was committed since.
    package var isFull: Bool { fullAt.withLock { $0 }.map { clock.now - $0 < .seconds(60) } ?? false }

    /// Closes all connections, and waits for the transactions that run.
    package func close() async { await pool.close() }

    // One attempt

    private enum Outcome<Answer: Sendable>: Sendable {
        case done(Answer)
        case failed(any Error, mayRunAgain: Bool)
    }

    private func run<Answer: Sendable>(
        _ options: PostgresTransactionOptions, _ body: @escaping @Sendable (PostgresTransaction) throws -> Answer
    ) async -> Outcome<Answer> {
        let (configuration, metrics) = (configuration, metrics)
        return await useConnection { connection, reply in
            let transaction = PostgresTransaction(connection, configuration, options)
            defer { transaction.end() }
            do {
                let answer = try body(transaction)
                if let failure = transaction.failure { throw failure }
                if options.isReadOnly {
                    // The caller of a transaction that only reads does not wait for its end.
                    reply(.done(answer))
                    return nil
                }
                try transaction.commit()
                self.fullAt.withLock { $0 = nil }
                return .done(answer)
            } catch {
                let failure = transaction.failure
                if failure?.code == .commitUnknown { metrics.unknownCommit() }
                if failure?.code == .lockTimeout { metrics.lockTimeout() }
                if failure?.state == Self.diskFull, !options.isReadOnly { self.fullAt.withLock { $0 = self.clock.now } }
                // The caller gets the error that the body has made of the failure.
                let isOwnFault = options.isReadOnly && failure?.code == .readOnly
                return .failed(error, mayRunAgain: !isOwnFault && failure?.mayRunAgain ?? false)
            }
        }
    }

    private func use<Answer: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection) -> Outcome<Answer>
    ) async -> Outcome<Answer> {
        await useConnection { connection, _ in body(connection) }
    }

    /// Leases a connection, and has the body use it on its thread. The connection goes back when the body ends; then the caller has its
    /// outcome, unless the body has replied before and returns `nil`.
    private func useConnection<Answer: Sendable>(
        _ body: @escaping @Sendable (PostgresConnection, (Outcome<Answer>) -> Void) -> Outcome<Answer>?
    ) async -> Outcome<Answer> {
        let lease: PostgresLease
        do throws(PostgresError) {
            lease = try await pool.lease()
        } catch {
            return .failed(error, mayRunAgain: error.mayRunAgain)
        }
        let cancel = LockedValue<(@Sendable () -> Void)?>(nil)
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ending = lease.use { [pool] connection in
                    let outcome = body(connection) { continuation.resume(returning: $0) }
                    pool.release(lease)
                    if let outcome { continuation.resume(returning: outcome) }
                }
                cancel.withLock { $0 = ending }
                if Task.isCancelled { ending() }
            }
        } onCancel: {
            cancel.withLock { $0 }?()
        }
    }
}
