import Foundation
import TestSupport
import Testing

/// Goal: what a command has acknowledged is on the disk, and not only in the system's memory. Method: `Tests/Faults/power.py` records all calls of a
/// run that comes to its end, makes the disk of what was synced, and has the commands look at it.
@Suite(.timeLimit(.minutes(20))) struct PowerCutTests {
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Faults/power.py")

    /// A library is loaded before others: Linux alone.
    private static var isPossible: Bool {
        #if os(Linux)
            ["/usr/bin/python3", "/usr/bin/cc"].allSatisfy(FileManager.default.isExecutableFile(atPath:))
        #else
            false
        #endif
    }

    @Test(.enabled(if: isPossible), arguments: ["save", "import", "export", "serve"])
    func `what was acknowledged is there after a power cut`(scenario: String) async throws {
        let scratch = try Scratch()
        let errors = try scratch.write("", to: "errors")
        try FileManager.default.createDirectory(at: scratch["work"], withIntermediateDirectories: true)
        // What is wrong is printed to standard output.
        let status = try ChildProcess.run(
            "/bin/sh",
            [
                "-c", "exec /usr/bin/python3 \"$@\" >&2", "sh", Self.script.path, "--tidemark", Tool().executable.path,
                "--server", Tool(named: "tidemark-server").executable.path,
                "--scenario", scenario, "--ended", "--seed", "1", "--folder", scratch["work"].path,
            ], errors: errors)
        let told = try String(contentsOf: errors, encoding: .utf8)
        #expect(status == 0, "\(told)")
    }
}
