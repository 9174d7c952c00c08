import Foundation

/// The command-line tool, or another program of the package, as a process.
public struct Tool: Sendable {
    public struct Result: Sendable {
        public let status: Int32
        /// The signal that ended the process; `nil` if it exited.
        public let signal: Int32?
        public let output: String
        public let errors: String

        /// Standard output as a JSON object.
        public func json() throws -> [String: Any] {
            try JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any] ?? [:]
        }
    }

    public let executable: URL

    /// A program of the system.
    init(at path: String) { executable = URL(fileURLWithPath: path) }

    /// A program that was built with the tests: the tool, for which `TIDEMARK_TOOL` may name another, unless `name` says otherwise.
    public init(named name: String = "tidemark") throws {
        if name == "tidemark", let path = ProcessInfo.processInfo.environment["TIDEMARK_TOOL"] {
            executable = URL(fileURLWithPath: path)
            return
        }
        let directory = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
        let candidates = [directory, Bundle.main.bundleURL, Bundle.main.bundleURL.deletingLastPathComponent()]
        guard
            let found = candidates.map({ $0.appendingPathComponent(name) }).first(where: {
                var isDirectory: ObjCBool = false
                return FileManager.default.fileExists(atPath: $0.path, isDirectory: &isDirectory) && !isDirectory.boolValue
            })
        else {
            throw CocoaError(.fileNoSuchFile)
        }
        executable = found
    }

    /// Runs the program to its end, or kills it after `killingAfter`.
    ///
    /// - Parameters:
    ///   - directory: Its working directory; by default that of the tests.
    ///   - limit: The greatest size of a file that it may write, in units of 512 bytes; a longer write fails with EFBIG.
    ///   - terminal: Its standard input, and where it writes its errors.
    ///   - isControlling: Whether the process opens the terminal as `/dev/tty`; on Linux only.
    public func run(
        _ arguments: [String], input: URL? = nil, killingAfter delay: Duration? = nil, environment: [String: String] = [:],
        in directory: URL? = nil, fileSizeLimit limit: Int? = nil, on terminal: PseudoTerminal? = nil,
        isControlling: Bool = false
    ) async throws -> Result {
        let scratch = try Scratch()
        let (output, errors) = (scratch["output"], scratch["errors"])
        for file in [output, errors] { try Data().write(to: file) }
        let variables = ProcessInfo.processInfo.environment
            // A backtrace of a killed process that hangs would keep it from ending.
            .merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }.merging(environment) { $1 }
        // Shell commands that run before the process begins.
        var before = directory == nil ? "" : "cd \"$0\" && "
        if let limit { before += "trap '' XFSZ && ulimit -f \(limit) && " }
        if isControlling { before += "exec setsid --ctty --wait \"$@\"; " }
        let process = try ChildProcess(
            before.isEmpty ? executable : URL(fileURLWithPath: "/bin/sh"),
            before.isEmpty ? arguments : ["-c", before + "exec \"$@\"", directory?.path ?? "", executable.path] + arguments,
            environment: variables, input: terminal?.path ?? input?.path ?? "/dev/null", output: output.path,
            errors: terminal?.path ?? errors.path)
        let hasEnded = DispatchSemaphore(value: 0)
        if let delay {
            // A thread of its own: where many tests run, a task gets its turn when the process has long ended.
            Thread.detachNewThread {
                if hasEnded.wait(timeout: .now() + delay / .seconds(1)) == .timedOut { process.kill() }
            }
        }
        let (status, signal) = await process.end()
        hasEnded.signal()
        return Result(
            status: status, signal: signal, output: try String(contentsOf: output, encoding: .utf8),
            errors: try terminal?.shown() ?? String(contentsOf: errors, encoding: .utf8))
    }
}
