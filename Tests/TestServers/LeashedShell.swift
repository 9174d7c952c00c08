import Foundation

/// A shell that runs a script, and reads the end of its input when the process of the tests lets go of it, or ends, however it ends.
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

    /// Lets go of the shell, and waits for its end.
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
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        let words = (["sh", "-c", script, "sh"] + arguments).map { strdup($0) } + [nil]
        var environment = ProcessInfo.processInfo.environment
        for name in environment.keys where name.hasPrefix("PG") { environment[name] = nil }
        environment["LC_ALL"] = "C"
        let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var identifier: pid_t = 0
        let failure = posix_spawn(&identifier, "/bin/sh", &actions, nil, words, variables)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        return identifier
    }
}
