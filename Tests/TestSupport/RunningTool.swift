import Foundation

/// A program that runs while the test goes on, and whose output is read line by line.
///
/// `@unchecked Sendable`: the lines are read by one test, one after the other.
public final class RunningTool: @unchecked Sendable {
    private let process: ChildProcess
    private let stream: UnsafeMutablePointer<FILE>
    private let scratch: Scratch

    init(_ executable: URL, _ arguments: [String], environment: [String: String]) throws {
        scratch = try Scratch()
        let output = scratch["output"].path
        guard mkfifo(output, 0o600) == 0 else { throw POSIXError(.EIO) }
        // Opened before the process opens its end, which waits until this one is open.
        let descriptor = open(output, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw POSIXError(.EIO) }
        _ = fcntl(descriptor, F_SETFL, 0)
        stream = fdopen(descriptor, "r")
        let variables = ProcessInfo.processInfo.environment.merging(["SWIFT_BACKTRACE": "enable=no"]) { $1 }
            .merging(environment) { $1 }
        process = try ChildProcess(
            executable, arguments, environment: variables, input: "/dev/null", output: output, errors: "/dev/null")
    }

    deinit {
        process.kill()
        fclose(stream)
    }

    /// The next line of its output; `nil` when it has ended.
    public func line() async -> String? {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                var buffer: UnsafeMutablePointer<CChar>?
                var capacity = 0
                let length = getline(&buffer, &capacity, stream)
                defer { free(buffer) }
                continuation.resume(
                    returning: length > 0 && buffer![length - 1] == 10
                        ? String(decoding: UnsafeRawBufferPointer(start: buffer, count: length - 1), as: UTF8.self) : nil)
            }
        }
    }

    /// Asks the program to end by SIGTERM, and returns its exit status.
    public func terminate() async -> Int32 {
        process.kill(by: SIGTERM)
        return await process.end().status
    }

    /// Kills the program with SIGKILL, and returns the lines that it has written since the last one that was read.
    @discardableResult
    public func kill() async -> [String] {
        process.kill()
        _ = await process.end()
        var lines: [String] = []
        while let line = await line() { lines.append(line) }
        return lines
    }
}

extension Tool {
    /// Starts the program, and returns while it runs.
    public func start(_ arguments: [String], environment: [String: String] = [:]) throws -> RunningTool {
        try RunningTool(executable, arguments, environment: environment)
    }
}
