import Foundation
import TestSupport
import Testing

/// Goal: what a command has acknowledged is on the disk, not only in the system's memory. Method: `Tests/Faults/power.py` records
/// all calls of a run to its end, or of a run that continues after a kill, makes a disk from what was synced, and lets the
/// commands check it.
@Suite(.serialized, .timeLimit(.minutes(20))) struct PowerCutTests {
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Faults/power.py")

    /// Only on Linux, because a library is loaded before the others.
    private static var isPossible: Bool {
        #if os(Linux)
            ["/usr/bin/python3", "/usr/bin/cc"].allSatisfy(FileManager.default.isExecutableFile(atPath:))
        #else
            false
        #endif
    }

    @Test(
        .enabled(if: isPossible),
        arguments: ["save", "import", "export", "serve", "backup-plain", "admin-backup", "assets-download", "restore-replace"])
    func `acknowledged data are there after a power cut`(scenario: String) async throws {
        try await Self.run("--scenario", scenario, "--ended")
    }

    @Test(.enabled(if: isPossible))
    func `a container is at one place, and whole, after a power cut that follows a kill and another attempt`() async throws {
        try await Self.run("--resumed")
    }

    /// Runs the script; it must find nothing.
    private static func run(_ arguments: String...) async throws {
        let scratch = try Scratch()
        let errors = try scratch.write("", to: "errors")
        try FileManager.default.createDirectory(at: scratch["work"], withIntermediateDirectories: true)
        // The script prints violations to standard output.
        let (tidemark, server) = (try Tool().executable.path, try Tool(named: "tidemark-server").executable.path)
        let words =
            [
                "-c", "exec /usr/bin/python3 \"$@\" >&2", "sh", script.path, "--tidemark", tidemark, "--server", server,
                "--seed", "1", "--folder", scratch["work"].path,
            ] + arguments
        // The script takes long, so it waits on a thread that is not one of the tests'.
        let status: Int32 = try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(with: Result { try ChildProcess.run("/bin/sh", words, errors: errors) })
            }
        }
        let told = try String(contentsOf: errors, encoding: .utf8)
        #expect(status == 0, "\(told)")
    }
}
