import TidemarkCloud
import TidemarkModel

extension PostgresDatabase {
    /// Calls a body that runs one reading statement. After an error that may pass it calls the body again, as a transaction runs
    /// again.
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

    /// Runs a transaction, as ``transaction(_:_:)`` does, and throws its errors as `CloudError`.
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

    /// Runs one statement that only reads, and throws errors as `CloudError`.
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
    /// Calls a body, and throws its errors as `CloudError`.
    static func ofPostgres<Result>(_ body: () throws -> Result) throws(CloudError) -> Result {
        do {
            return try body()
        } catch {
            throw CloudError(postgres: error)
        }
    }
}

extension String {
    /// Whether a column of the type `text` can hold the string: it has no U+0000.
    var isStorable: Bool { !utf8.contains(0) }
}
