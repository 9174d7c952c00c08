import Foundation
import TestServers
import TidemarkModel
import TidemarkPostgres

/// A database of a test's own on the server that tests share.
struct Fixture {
    let server: PostgresServer
    let name: String
    let database: PostgresDatabase

    init(
        on server: PostgresServer? = nil, port: Int? = nil, options: String = "",
        _ change: (inout PostgresConfiguration) -> Void = { _ in }
    ) async throws {
        (self.server, name) = try await apart {
            let server = try server ?? .shared()
            return (server, try server.makeDatabase(options))
        }
        database = try Self.database(self.server.address(name, port: port), change)
    }

    static func database(
        _ address: String, metrics: PostgresMetrics = PostgresMetrics(),
        _ change: (inout PostgresConfiguration) -> Void = { _ in }
    ) throws -> PostgresDatabase {
        var configuration = PostgresConfiguration(try PostgresAddress(address))
        configuration.connections = 4
        // A machine that does much else is slow. Tests of limits set their own.
        (configuration.waitLimit, configuration.patience) = (.seconds(60), .seconds(60))
        configuration.lockTimeout = .seconds(60)
        change(&configuration)
        return PostgresDatabase(configuration, metrics: metrics)
    }

    /// Another of Tidemark's servers, on the same database.
    func other(port: Int? = nil, _ change: (inout PostgresConfiguration) -> Void = { _ in }) throws -> PostgresDatabase {
        try Self.database(server.address(name, port: port), change)
    }

    func sql(_ text: String) async throws { try await apart { try server.sql(text, in: name) } }
    /// Runs SQL on the calling thread, for the body of a transaction.
    func sqlNow(_ text: String) throws { try server.sql(text, in: name) }

    /// Makes a table of numbers and texts.
    func makeTable() async throws { try await sql("CREATE TABLE t (n int8 PRIMARY KEY, s text)") }

    func rows() async throws -> [Int64: String] {
        let rows = try await database.read { try $0.query("SELECT n, s FROM t") }
        return Dictionary(uniqueKeysWithValues: try rows.map { (try $0.value(0), try $0.value(1)) })
    }
}

/// Runs a blocking body on a thread of its own, since tests share few threads.
func apart<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try body() }) }
    }
}

/// Returns the `PostgresError` that a body throws; `nil` for none, and for any other error.
func failure<Answer>(_ body: () async throws -> Answer) async -> PostgresError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? PostgresError
    }
}

/// A signal that is sent once, and for which tasks and threads wait.
final class Signal: Sendable {
    private let state = LockedValue<(isSent: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func send() {
        let waiting = state.withLock { state in
            defer { state = (true, []) }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let isSent = state.withLock { state in
                if !state.isSent { state.waiting.append(continuation) }
                return state.isSent
            }
            if isSent { continuation.resume() }
        }
    }

    /// Waits on a thread that may be blocked.
    func block() { while !state.withLock({ $0.isSent }) { usleep(1_000) } }
}
