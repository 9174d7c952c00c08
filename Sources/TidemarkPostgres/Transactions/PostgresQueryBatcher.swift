import TidemarkModel

/// Sends statements that only read, each of a caller of its own, together: what comes while a round trip runs goes with the next one.
///
/// A busy server so needs a round trip for many requests, and a thread is woken for many. Each statement is sent after it was given, and is
/// a transaction of its own to its caller: one that fails has no effect on the others.
final class PostgresQueryBatcher: Sendable {
    /// A statement, and what takes its rows.
    struct Query: Sendable {
        let command: PostgresCommand
        let reply: @Sendable (Result<PostgresRows, PostgresError>) -> Void
    }

    private struct State {
        /// What makes the statements that wait, at the moment when they are sent; each with its number.
        var waiting: [(number: Int, make: @Sendable () -> Query)] = []
        var lastNumber = 0
        /// Connections that send now.
        var running = 0

        /// Returns whether nothing waits; then a connection less sends.
        mutating func endsRun() -> Bool {
            if waiting.isEmpty { running -= 1 }
            return waiting.isEmpty
        }
    }

    private let pool: PostgresPool
    private let state = LockedValue(State())

    /// Connections at once: while one waits for its results, another sends.
    private static let atOnce = 2
    /// Statements in one round trip at the most.
    private static let most = 100
    /// Round trips after which a connection goes back to the pool, which looks at its age.
    private static let rounds = 1_000

    init(_ pool: PostgresPool) { self.pool = pool }

    /// Sends a statement.
    ///
    /// - Parameter make: Makes the statement when it is sent, so that it can have what was asked for meanwhile.
    func send(_ make: @escaping @Sendable () -> Query) {
        let begins = state.withLock { state in
            state.lastNumber += 1
            state.waiting.append((state.lastNumber, make))
            guard state.running < Self.atOnce else { return false }
            state.running += 1
            return true
        }
        // A task of its own: others go on when the caller's is cancelled.
        if begins { Task { await run() } }
    }

    private func run() async {
        var isDone = false
        while !isDone {
            let lease: PostgresLease
            let last = state.withLock { $0.lastNumber }
            do throws(PostgresError) {
                lease = try await pool.lease()
            } catch {
                isDone = fail(upTo: last, error)
                continue
            }
            isDone = await withCheckedContinuation { continuation in
                _ = lease.use { [self] connection in
                    let isDone = exchange(connection)
                    pool.release(lease)
                    continuation.resume(returning: isDone)
                }
            }
        }
    }

    /// There was no connection for what waited. What came while one was tried for is worth another try.
    ///
    /// - Returns: Whether nothing waits any more.
    private func fail(upTo last: Int, _ error: PostgresError) -> Bool {
        let (failed, isDone) = state.withLock { state in
            let failed = state.waiting.prefix { $0.number <= last }.map(\.make)
            state.waiting.removeFirst(failed.count)
            return (failed, state.endsRun())
        }
        for make in failed { make().reply(.failure(error)) }
        return isDone
    }

    /// Sends what waits, and what comes meanwhile.
    ///
    /// - Returns: Whether nothing waits any more; otherwise another connection has to go on.
    private func exchange(_ connection: PostgresConnection) -> Bool {
        for _ in 0..<Self.rounds {
            guard let queries = next() else { return true }
            answer(queries, connection)
            if connection.isBroken || pool.statistics.waiting > 0 { break }
        }
        return state.withLock { $0.endsRun() }
    }

    private func next() -> [Query]? {
        let makers: [@Sendable () -> Query]? = state.withLock { state in
            guard !state.endsRun() else { return nil }
            let some = state.waiting.prefix(Self.most).map(\.make)
            state.waiting.removeFirst(some.count)
            return some
        }
        return makers?.map { $0() }
    }

    private func answer(_ queries: [Query], _ connection: PostgresConnection) {
        do throws(PostgresError) {
            let rows = try connection.read(queries.map(\.command))
            for (query, rows) in zip(queries, rows) { query.reply(.success(rows)) }
        } catch {
            guard queries.count > 1, !connection.isBroken else {
                for query in queries { query.reply(.failure(error)) }
                return
            }
            // The server has left out what came after the one that has failed.
            for query in queries { answer([query], connection) }
        }
    }
}
