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
        /// What makes the statements that wait, at the moment when they are sent.
        var waiting: [@Sendable () -> Query] = []
        /// Connections that send now.
        var running = 0
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
            state.waiting.append(make)
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
            do throws(PostgresError) {
                lease = try await pool.lease()
            } catch {
                return fail(error)
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

    /// There is no connection: nothing that waits can be sent.
    private func fail(_ error: PostgresError) {
        let waiting = state.withLock { state in
            state.running -= 1
            defer { state.waiting = [] }
            return state.waiting
        }
        for make in waiting { make().reply(.failure(error)) }
    }

    /// Sends what waits, and what comes meanwhile.
    ///
    /// - Returns: Whether nothing waits any more; otherwise another connection has to go on.
    private func exchange(_ connection: PostgresConnection) -> Bool {
        for _ in 0..<Self.rounds {
            guard let queries = next() else { return true }
            answer(queries, connection)
            if connection.isBroken || pool.statistics.waiting > 0 { return false }
        }
        return false
    }

    private func next() -> [Query]? {
        let makers: [@Sendable () -> Query]? = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            let some = Array(state.waiting.prefix(Self.most))
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
