import Foundation
import TidemarkModel

/// A process that a test starts, waits for and kills.
///
/// Not Foundation's `Process`: on Linux that reads beyond a buffer while more than some thousand files are open, which a parallel run of
/// the tests comes to, and crashes now and then.
public final class ChildProcess: Sendable {
    private let identifier: pid_t
    /// Once it is waited for, the identifier may be another process's.
    private let isWaitedFor = LockedValue(false)

    init(
        _ executable: URL, _ arguments: [String], environment: [String: String], input: String, output: String, errors: String
    ) throws {
        #if canImport(Darwin)
            var actions: posix_spawn_file_actions_t?
        #else
            var actions = posix_spawn_file_actions_t()
        #endif
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY, 0)
        let words = ([executable.path] + arguments).map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for text in words + variables { free(text) } }
        var identifier: pid_t = 0
        let failure = posix_spawn(&identifier, executable.path, &actions, nil, words, variables)
        guard failure == 0 else { throw POSIXError(POSIXErrorCode(rawValue: failure) ?? .EIO) }
        self.identifier = identifier
    }

    /// Runs a program to its end, which comes soon, and returns the status it exits with.
    public static func run(
        _ executable: String, _ arguments: [String], errors: URL = URL(fileURLWithPath: "/dev/null")
    ) throws -> Int32 {
        try ChildProcess(
            URL(fileURLWithPath: executable), arguments, environment: ProcessInfo.processInfo.environment, input: "/dev/null",
            output: "/dev/null", errors: errors.path
        ).wait().status
    }

    /// Waits for its end: the status it exits with, or the signal that ends it.
    func end() async -> (status: Int32, signal: Int32?) {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in continuation.resume(returning: wait()) }
        }
    }

    private func wait() -> (status: Int32, signal: Int32?) {
        var information = siginfo_t()
        // Without collecting it: until then its identifier is its own.
        while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        isWaitedFor.withLock { $0 = true }
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8 & 0xff, nil) : (signal, signal)
    }

    /// Kills it if it still runs.
    func kill() {
        isWaitedFor.withLock { if !$0 { _ = Foundation.kill(identifier, SIGKILL) } }
    }
}
