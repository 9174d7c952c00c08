import Foundation
import TidemarkModel

/// A PgBouncer that a test starts before a PostgreSQL server, on a loopback port, in the mode `transaction`: each transaction may
/// get another connection to the server. It ends with the test's process, also when that is killed.
public final class PgBouncer: Sendable {
    private static let program =
        (["/usr/sbin"] + (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init))
        .map { $0 + "/pgbouncer" }.first { FileManager.default.isExecutableFile(atPath: $0) }

    /// Whether tests can start a PgBouncer, and a server behind it.
    public static let isInstalled = program != nil && PostgresServer.isInstalled
    /// Why tests can't start a PgBouncer, for the comment of a skipped test.
    public static let whyNot = program == nil ? "PgBouncer is not installed: apt-get install pgbouncer" : PostgresServer.whyNot

    public let port: Int
    private let folder: URL
    private let process = LockedValue<LeashedShell?>(nil)

    /// Starts it.
    ///
    /// - Parameter connections: Connections to each database of the server.
    public init(before server: PostgresServer, connections: Int) throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-pgb-\(UUID().uuidString.prefix(8))")
        port = try PostgresServer.freePort()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if let user = PostgresServer.user { _ = chown(folder.path, user.id, user.group) }
        let settings = """
            [databases]
            * = host=127.0.0.1 port=\(server.port) user=tidemark
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(port)
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = \(connections)
            max_client_conn = 200
            server_round_robin = 1
            logfile = \(folder.path)/log
            """
        try Data(settings.utf8).write(to: folder.appendingPathComponent("pgbouncer.ini"))
        try start()
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Starts the PgBouncer again, on the same port.
    public func start() throws {
        guard let program = Self.program else { throw PostgresServer.Failure(description: Self.whyNot) }
        let script = """
            \(PostgresServer.asUser) "$1" "$2/pgbouncer.ini" >/dev/null 2>&1 </dev/null &
            bouncer=$!
            cat >/dev/null
            kill -KILL $bouncer 2>/dev/null
            wait $bouncer
            (sleep 2; kill -0 "$3" 2>/dev/null || rm -rf "$2") >/dev/null 2>&1 &
            """
        let shell = try LeashedShell(script, [program, folder.path, "\(getpid())"])
        process.withLock { $0 = shell }
        for _ in 0..<600 where PostgresServer.isFree(port) { usleep(20_000) }
        guard !PostgresServer.isFree(port) else {
            let log = (try? String(contentsOf: folder.appendingPathComponent("log"), encoding: .utf8)) ?? ""
            throw PostgresServer.Failure(description: "PgBouncer has not started: \(log.suffix(500))")
        }
    }

    /// Kills the PgBouncer: all connections through it break.
    public func stop() { process.withLock { $0.take() }?.end() }
}
