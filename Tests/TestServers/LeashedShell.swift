import Foundation

/// A shell that runs a script. The script's standard input ends when ``end()`` is called or when the process of the tests ends,
/// by a kill, too.
///
/// A script that starts a server waits for the end of its input (`cat >/dev/null`), and ends the server then.
struct LeashedShell: Sendable {
    private let identifier: pid_t
    private let leash: Int32

    /// Starts a script.
    ///
    /// - Parameter arguments: The script has them as `$1` and so on.
    init(_ script: String, _ arguments: [String]) throws {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        identifier = try Self.spawn(script, arguments, input: ends[0])
        leash = ends[1]
    }

    /// Ends the input of the script, and waits for the end of the shell.
    func end() {
        close(leash)
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
    }

    /// Runs a script to its end, and returns its status. Its input is empty.
    static func run(_ script: String, _ arguments: [String]) throws -> Int32 {
        let identifier = try spawn(script, arguments, input: nil)
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        return status & 0x7f == 0 ? status >> 8 & 0xff : 128 + (status & 0x7f)
    }

    private static func spawn(_ script: String, _ arguments: [String], input: Int32?) throws -> pid_t {
        var environment = ProcessInfo.processInfo.environment
        for name in environment.keys where name.hasPrefix("PG") { environment[name] = nil }
        environment["LC_ALL"] = "C"
        return try ProcessSpawn.start(
            "/bin/sh", ["sh", "-c", script, "sh"] + arguments, environment: environment,
            input: input.map { .descriptor($0) } ?? .path("/dev/null"), output: "/dev/null", errors: "/dev/null")
    }
}
