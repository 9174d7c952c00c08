import Foundation
import TidemarkModel

/// A PostgreSQL server that a test starts, in a temporary folder, on a loopback port and a Unix socket. It ends with the test's
/// process, also when that is killed.
public final class PostgresServer: Sendable {
    /// Where the programs of PostgreSQL are; `nil` where they are missing.
    private static let programs: URL? = {
        let versions = ["15", "16", "17", "18"].map { "/usr/lib/postgresql/\($0)/bin" }
        let path = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return (versions + path + ["/opt/homebrew/opt/postgresql@15/bin"]).map { URL(fileURLWithPath: $0) }.first {
            FileManager.default.isExecutableFile(atPath: $0.appendingPathComponent("initdb").path)
                && FileManager.default.isExecutableFile(atPath: $0.appendingPathComponent("postgres").path)
        }
    }()

    /// Whether tests can start a server.
    public static let isInstalled = programs != nil
    /// Why tests can't start a server, for the comment of a skipped test.
    public static let whyNot = "PostgreSQL is not installed: apt-get install postgresql-15"

    /// A server that tests share, each with databases of its own. No test stops it.
    public static func shared() throws -> PostgresServer { try sharedServer.get() }
    private static let sharedServer = Result { try PostgresServer() }

    private let folder: URL
    public let port: Int
    private let process = LockedValue<LeashedShell?>(nil)
    private let databases = LockedValue(0)

    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    // Starting

    /// Makes a cluster and starts its server.
    ///
    /// - Parameters:
    ///   - settings: Lines of `postgresql.conf`.
    ///   - log: An empty folder of the server's user for the write-ahead log, in files of 1 MB; `nil` for one beside the tables.
    public init(settings: [String] = [], log: URL? = nil) throws {
        guard let programs = Self.programs else { throw Failure(description: Self.whyNot) }
        // Short: a Unix socket's path has 107 bytes at the most.
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("tidemark-pg-\(UUID().uuidString.prefix(8))")
        port = try Self.freePort()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if let user = Self.user {
            guard chown(folder.path, user.id, user.group) == 0 else { throw Failure(description: "chown: errno \(errno)") }
        }
        let made = try LeashedShell.run(
            "exec \(Self.asUser) \"$1/initdb\" --no-sync -A trust -U tidemark -E UTF8 --locale=C -D \"$2/data\" ${3:+-X \"$3\" --wal-segsize=1} >\"$2/initdb.log\" 2>&1",
            [programs.path, folder.path] + [log?.path].compactMap { $0 })
        guard made == 0 else {
            let log = (try? String(contentsOf: folder.appendingPathComponent("initdb.log"), encoding: .utf8)) ?? ""
            throw Failure(description: "initdb has failed (\(made)): \(log.suffix(500))")
        }
        let configuration = folder.appendingPathComponent("data/postgresql.conf")
        let lines =
            [
                "listen_addresses = '127.0.0.1'", "port = \(port)", "unix_socket_directories = '\(folder.path)'",
                "max_connections = 200", "shared_buffers = 64MB", "fsync = off", "log_min_messages = fatal",
            ] + settings
        let handle = try FileHandle(forWritingTo: configuration)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data((lines.joined(separator: "\n") + "\n").utf8))
        try handle.close()
        try start()
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The user as whom the server runs when the tests run as root: PostgreSQL refuses to run as root.
    static let user: (id: uid_t, group: gid_t)? =
        getuid() == 0 ? (getpwnam("postgres") ?? getpwnam("nobody")).map { ($0.pointee.pw_uid, $0.pointee.pw_gid) } : nil
    static var asUser: String {
        user.map { "setpriv --reuid=\($0.id) --regid=\($0.group) --clear-groups" } ?? ""
    }

    /// A port that is not in use, below the ports that the system gives to outgoing connections: none of these takes it while the
    /// server restarts.
    static func freePort() throws -> Int {
        for _ in 0..<100 {
            let port = Int.random(in: 15_000..<32_000)
            if isFree(port) { return port }
        }
        throw Failure(description: "no port from 15000 to 31999 is free")
    }

    static func isFree(_ port: Int) -> Bool {
        #if canImport(Glibc)
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #endif
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = in_port_t(port).bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    /// Starts the server again, on the same port.
    public func start() throws {
        guard let programs = Self.programs else { return }
        let script = """
            \(Self.asUser) "$1/postgres" -D "$2/data" >>"$2/server.log" 2>&1 </dev/null &
            server=$!
            cat >/dev/null
            kill -QUIT $server 2>/dev/null
            wait $server
            # Where the tests have ended, nobody else removes the folder.
            (sleep 2; kill -0 "$3" 2>/dev/null || rm -rf "$2") >/dev/null 2>&1 &
            """
        let shell = try LeashedShell(script, [programs.path, folder.path, "\(getpid())"])
        process.withLock { $0 = shell }
        for _ in 0..<600 {
            if try LeashedShell.run(
                "exec \"$1/pg_isready\" -q -h 127.0.0.1 -p \(port) -U tidemark -d postgres", [programs.path, folder.path]) == 0
            {
                return
            }
            usleep(50_000)
        }
        let log = (try? String(contentsOf: folder.appendingPathComponent("server.log"), encoding: .utf8)) ?? ""
        throw Failure(description: "the server has not started: \(log.suffix(500))")
    }

    /// Ends the server at once, as after a crash of the machine that loses no file: its connections break, and it recovers when it starts.
    public func stop() {
        process.withLock { $0.take() }?.end()
    }

    /// Restarts the server as a standby without a primary, which is read-only; or as a primary again.
    public func restart(asStandby isStandby: Bool = false) throws {
        stop()
        let signal = folder.appendingPathComponent("data/standby.signal")
        if isStandby {
            try Data().write(to: signal)
        } else if FileManager.default.fileExists(atPath: signal.path) {
            try FileManager.default.removeItem(at: signal)
        }
        try start()
    }

    /// Ends the server cleanly, copies its files for ``returnToCopy()``, and starts it again.
    public func makeCopy() throws {
        try shutDown()
        try run("rm -rf \"$1/copy\" && cp -a \"$1/data\" \"$1/copy\"")
        try start()
    }

    /// Puts back the files that ``makeCopy()`` has copied, and restarts the server: what was written since is lost.
    public func returnToCopy() throws {
        stop()
        try run("rm -rf \"$1/data\" && cp -a \"$1/copy\" \"$1/data\"")
        try start()
    }

    /// Ends the server after a checkpoint: nothing has to be recovered when it starts.
    private func shutDown() throws {
        guard let programs = Self.programs else { return }
        let status = try LeashedShell.run(
            "exec \(Self.asUser) \"$1/pg_ctl\" stop -s -w -m fast -D \"$2/data\" >/dev/null 2>&1", [programs.path, folder.path])
        guard status == 0 else { throw Failure(description: "the server has not ended (\(status))") }
        stop()
    }

    private func run(_ script: String) throws {
        let status = try LeashedShell.run(script, [folder.path])
        guard status == 0 else { throw Failure(description: "'\(script)' has failed (\(status))") }
    }

    /// What the server has written to its log.
    public var log: String {
        get throws { String(decoding: try Data(contentsOf: folder.appendingPathComponent("server.log")), as: UTF8.self) }
    }

    // Using

    fileprivate var hostFile: String { folder.appendingPathComponent("data/pg_hba.conf").path }

    /// Returns the connection string of a database.
    public func address(_ database: String = "postgres", port: Int? = nil, user: String = "tidemark") -> String {
        "host=127.0.0.1 port=\(port ?? self.port) user=\(user) dbname=\(database)"
    }

    /// Makes an empty database, and returns its name.
    public func makeDatabase(_ options: String = "") throws -> String {
        let number = databases.withLock { count in
            count += 1
            return count
        }
        let name = "test\(number)"
        try sql("CREATE DATABASE \(name) \(options)")
        return name
    }

    /// Executes SQL by psql, past the code that is tested.
    public func sql(_ text: String, in database: String = "postgres") throws {
        guard let programs = Self.programs else { return }
        let status = try LeashedShell.run(
            "exec \"$1/psql\" -X -q -v ON_ERROR_STOP=1 -h 127.0.0.1 -p \(port) -U tidemark -d \(database) -c \"$2\" 2>>\"$3/psql.log\"",
            [programs.path, text, folder.path])
        guard status == 0 else {
            let log = (try? String(contentsOf: folder.appendingPathComponent("psql.log"), encoding: .utf8)) ?? ""
            throw Failure(description: "psql has failed (\(status)): \(log.suffix(300))")
        }
    }
}

extension PostgresServer {
    /// Requires a password from all users but `tidemark` from now on.
    public func demandPasswords() throws {
        try sql(
            "COPY (SELECT unnest(ARRAY['host all tidemark 127.0.0.1/32 trust', 'host all all 127.0.0.1/32 scram-sha-256'])) TO '\(hostFile)'"
        )
        try sql("SELECT pg_reload_conf()")
    }
}
