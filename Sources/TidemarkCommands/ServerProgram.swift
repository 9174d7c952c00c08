import Foundation

/// The program `tidemark-server`. The tool is built without its libraries.
enum ServerProgram {
    /// Executes the program in place of this one.
    ///
    /// - Parameter arguments: All arguments. The first is the name that the program's help and errors use.
    static func start(_ arguments: [String]) throws -> Never {
        guard let program = path() else {
            throw ending(
                "the program tidemark-server is neither beside this one nor on the PATH; build it by 'make server'", .unavailable)
        }
        var pointers = arguments.map { strdup($0) } + [nil]
        execv(program, &pointers)
        throw ending("cannot start \(program): \(String(cString: strerror(errno)))", .unavailable)
    }

    /// Finds the program beside this one, or on the `PATH`.
    private static func path() -> String? {
        var folders: [String] = []
        if let own = Bundle.main.executableURL { folders.append(own.resolvingSymlinksInPath().deletingLastPathComponent().path) }
        folders += (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return folders.lazy.map { "\($0)/tidemark-server" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
