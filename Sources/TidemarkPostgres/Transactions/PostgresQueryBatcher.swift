import TidemarkModel

/// Sends reading statements of many callers together: statements that come while a round trip runs go with the next.
///
/// So a busy server needs one round trip, and wakes one thread, for many requests. To its caller, each statement is a transaction
/// of its own that begins after the call. A statement that fails has no effect on the others.
final class PostgresQueryBatcher: Sendable {
    /// A statement, and what takes its rows.
    struct Query: Sendable {
        let command: PostgresCommand
        let reply: @Sendable (Result<PostgresRows, PostgresError>) -> Void
    }

    private struct State {
        /// The statements that wait, each with its number. A statement is made when it is sent.
        var waiting: [(number: Int, make: @Sendable () -> Query)] = []
        var lastNumber = 0
        /// Connections that send now.
        var running = 0

        /// Returns whether nothing waits, and in that case counts one connection fewer.
        mutating func endsRun() -> Bool {
            if waiting.isEmpty { running -= 1 }
            return waiting.isEmpty
        }
    }

    private let pool: PostgresPool
    private let state = LockedValue(State())

    /// How many connections send at once: while one waits for its results, another sends.
    private static let atOnce = 2
    /// The most statements of one round trip.
    private static let most = 100
    /// After so many round trips a connection goes back to the pool, which checks its age.
    private static let rounds = 1_000

    init(_ pool: PostgresPool) { self.pool = pool }

    /// Sends a statement.
    ///
    /// - Parameter make: Makes the statement when it is sent, so that it can include what was asked for until then.
    func send(_ make: @escaping @Sendable () -> Query) {
        let begins = state.withLock { state in
            state.lastNumber += 1
            state.waiting.append((state.lastNumber, make))
            guard state.running < Self.atOnce else { return false }
            state.running += 1
            return true
        }
        // A task of its own: it serves other callers too if this caller's task is cancelled.
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

    /// Fails the statements that waited while no connection could be had. Statements that came during the attempt get another
    /// one.
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

    /// Sends the statements that wait, and those that come meanwhile.
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
            // The server has skipped the statements after the one that failed.
            for query in queries { answer([query], connection) }
        }
    }
}
