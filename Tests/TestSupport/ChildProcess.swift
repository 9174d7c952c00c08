import Foundation
import TestServers
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
        identifier = try ProcessSpawn.start(
            executable.path, [executable.path] + arguments, environment: environment, input: .path(input), output: output,
            errors: errors)
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

    /// Kills it if it still runs, or sends it another signal.
    func kill(by signal: Int32 = SIGKILL) {
        isWaitedFor.withLock { if !$0 { _ = Foundation.kill(identifier, signal) } }
    }
}
