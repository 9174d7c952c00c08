import TidemarkCloud
import TidemarkModel

/// Looks up rows for many callers: what is asked for while a look-up runs goes with the next, in one statement.
///
/// A caller's reply comes from a statement that began after the call. So it has everything that was committed before the call, by whatever
/// server. It costs a server a statement for each round trip, however many requests it answers meanwhile.
final class PostgresLookUp<Key: Hashable & Sendable, Found: Sendable>: Sendable {
    private struct State {
        var keys: Set<Key> = []
        var waiting: [CheckedContinuation<Result<Found, PostgresError>, Never>] = []
        var running = 0
    }

    private let fetch: @Sendable ([Key]) async throws(PostgresError) -> Found
    private let state = LockedValue(State())
    private let atOnce: Int

    /// - Parameters:
    ///   - atOnce: Look-ups at once.
    ///   - fetch: Returns what was found for some keys; all callers that wait get it.
    init(atOnce: Int = 2, _ fetch: @escaping @Sendable ([Key]) async throws(PostgresError) -> Found) {
        (self.atOnce, self.fetch) = (atOnce, fetch)
    }

    /// Returns what a statement has found for the key and for those of others.
    ///
    /// - Parameter key: `nil` for a caller that only needs what comes with every reply.
    func found(for key: Key?) async throws(PostgresError) -> Found {
        let result = await withCheckedContinuation { continuation in
            let begins = state.withLock { state in
                state.waiting.append(continuation)
                if let key { state.keys.insert(key) }
                guard state.running < atOnce else { return false }
                state.running += 1
                return true
            }
            // A task of its own: others go on when the caller's is cancelled.
            if begins { Task { await run() } }
        }
        return try result.get()
    }

    private func run() async {
        while let (keys, waiting) = next() {
            let result: Result<Found, PostgresError>
            do throws(PostgresError) {
                result = .success(try await fetch(keys))
            } catch {
                result = .failure(error)
            }
            for continuation in waiting { continuation.resume(returning: result) }
        }
    }

    private func next() -> (keys: [Key], waiting: [CheckedContinuation<Result<Found, PostgresError>, Never>])? {
        state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.running -= 1
                return nil
            }
            defer { (state.keys, state.waiting) = ([], []) }
            return (Array(state.keys), state.waiting)
        }
    }
}

extension PostgresDatabase {
    /// Calls a body that runs one reading statement, again where that may succeed then, as a transaction would.
    func reading<Answer: Sendable>(_ body: () async throws(PostgresError) -> Answer) async throws(PostgresError) -> Answer {
        var backoff = Backoff(first: .milliseconds(20), longest: .seconds(1))
        let clock = ContinuousClock()
        let end = clock.now + configuration.patience
        var attempt = 1
        while true {
            do throws(PostgresError) {
                return try await body()
            } catch {
                let pause = backoff.fail()
                guard error.mayRunAgain, attempt < configuration.attempts, clock.now + pause < end else { throw error }
                attempt += 1
                do {
                    try await clock.sleep(for: pause)
                } catch {
                    throw PostgresError(.cancelled, "the task was cancelled before the statement could run again")
                }
            }
        }
    }

    /// As ``transaction(_:_:)``, with the error of a cloud.
    func write<Answer: Sendable>(
        _ options: PostgresTransactionOptions = .writing,
        _ body: @escaping @Sendable (PostgresTransaction) throws -> Answer
    ) async throws(CloudError) -> Answer {
        do {
            return try await transaction(options, body)
        } catch {
            throw CloudError(postgres: error)
        }
    }

    /// Runs one statement that only reads, with the error of a cloud.
    func rows(_ sql: String, _ parameters: any PostgresParameter...) async throws(CloudError) -> PostgresRows {
        let command = PostgresCommand(sql, parameters)
        do throws(PostgresError) {
            return try await reading { () throws(PostgresError) in try await query(command) }
        } catch {
            throw CloudError(postgres: error)
        }
    }
}

extension CloudError {
    /// Calls a body, and makes an error of a cloud of what it throws.
    static func ofPostgres<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch {
            throw CloudError(postgres: error)
        }
    }
}

extension String {
    /// Whether a column of the type `text` can have it.
    var isStorable: Bool { !utf8.contains(0) }
}
