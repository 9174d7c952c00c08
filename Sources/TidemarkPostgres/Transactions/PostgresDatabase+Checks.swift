import TidemarkModel

extension PostgresDatabase {
    private static let isReadOnly = PostgresCommand("SELECT current_setting('transaction_read_only')", [])
    private static let newerComponent = PostgresCommand("SELECT \(PostgresVersions.newerComponent)", [])

    /// Checks that there is a connection and that the server takes writes.
    ///
    /// - Throws: `PostgresError`; `readOnly` for a standby, and where `default_transaction_read_only` is on.
    package func check() async throws(PostgresError) { try checkTakesWrites(try await query(Self.isReadOnly)) }

    /// Checks that this version may still use the database, whatever a newer version has migrated.
    ///
    /// - Throws: `PostgresError` `newerVersion`, or what the statement throws.
    package func checkVersion() async throws(PostgresError) { try checkVersion(try await query(Self.newerComponent)) }

    /// Checks in one round trip that the database answers, takes writes, and has not been migrated by a newer version.
    ///
    /// - Parameter limit: The longest that the caller waits. Statements that still run then end by their own limits.
    /// - Throws: `PostgresError`; `unreachable` after the limit, `readOnly`, `newerVersion`.
    package func checkService(within limit: Duration = .seconds(5)) async throws(PostgresError) {
        let result: Result<Void, PostgresError> = await withCheckedContinuation { continuation in
            let reply = FirstReply(continuation)
            let timer = Task { [name = configuration.address.name] in
                // The sleep throws if the timer was cancelled: the database has answered.
                guard (try? await ContinuousClock().sleep(for: limit)) != nil else { return }
                reply.send(.failure(PostgresError(.unreachable, "the \(name) has not answered for \(limit)")))
            }
            // This task is not cancelled: to cancel a statement takes another connection to the same server.
            Task {
                do throws(PostgresError) {
                    let rows = try await run([Self.isReadOnly, Self.newerComponent], within: limit)
                    try checkTakesWrites(rows[0])
                    try checkVersion(rows[1])
                    reply.send(.success(()))
                } catch {
                    reply.send(.failure(error))
                }
                timer.cancel()
            }
        }
        try result.get()
    }

    private func checkTakesWrites(_ rows: PostgresRows) throws(PostgresError) {
        guard try rows[0].value(0, as: String.self) == "off" else { throw .readOnly(configuration.address.name) }
    }

    private func checkVersion(_ rows: PostgresRows) throws(PostgresError) {
        let component: String? = try rows[0].value(0)
        if let component { throw PostgresVersions.refusal(component, of: configuration.address.name) }
    }
}

/// Gives a caller the first of several replies.
private final class FirstReply: Sendable {
    private let waiting: LockedValue<CheckedContinuation<Result<Void, PostgresError>, Never>?>

    init(_ continuation: CheckedContinuation<Result<Void, PostgresError>, Never>) { waiting = LockedValue(continuation) }

    func send(_ result: Result<Void, PostgresError>) {
        let continuation = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        continuation?.resume(returning: result)
    }
}
