import Foundation
import TestServers
import TidemarkModel

/// A process that a test starts, waits for and kills.
///
/// Tests don't use Foundation's `Process`: on Linux it reads beyond a buffer while some thousand files are open, as in a parallel
/// run of the tests, and crashes now and then.
public final class ChildProcess: Sendable {
    private let identifier: pid_t
    /// Once the process was waited for, its identifier may belong to another process.
    private let isWaitedFor = LockedValue(false)

    init(
        _ executable: URL, _ arguments: [String], environment: [String: String], input: String, output: String, errors: String
    ) throws {
        identifier = try ProcessSpawn.start(
            executable.path, [executable.path] + arguments, environment: environment, input: .path(input), output: output,
            errors: errors)
    }

    /// Runs a program that ends soon, and returns its exit status.
    public static func run(
        _ executable: String, _ arguments: [String], errors: URL = URL(fileURLWithPath: "/dev/null")
    ) throws -> Int32 {
        try ChildProcess(
            URL(fileURLWithPath: executable), arguments, environment: ProcessInfo.processInfo.environment, input: "/dev/null",
            output: "/dev/null", errors: errors.path
        ).wait().status
    }

    /// Waits for the process to end: returns its exit status, or the signal that ended it.
    func end() async -> (status: Int32, signal: Int32?) {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in continuation.resume(returning: wait()) }
        }
    }

    private func wait() -> (status: Int32, signal: Int32?) {
        var information = siginfo_t()
        // Waits without collecting the process: until it is collected, no other process gets its identifier.
        while waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        isWaitedFor.withLock { $0 = true }
        var status: Int32 = 0
        while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8 & 0xff, nil) : (signal, signal)
    }

    /// Sends a signal to the process if it still runs, by default to kill it.
    func kill(by signal: Int32 = SIGKILL) {
        isWaitedFor.withLock { if !$0 { _ = Foundation.kill(identifier, signal) } }
    }
}
