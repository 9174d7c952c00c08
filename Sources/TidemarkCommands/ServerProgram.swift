import Foundation

/// The program `tidemark-server`, which the tool itself can do without.
enum ServerProgram {
    /// Becomes the program.
    ///
    /// - Parameter arguments: The first is what it is started as; its help and its errors name that.
    static func start(_ arguments: [String]) throws -> Never {
        guard let program = path() else {
            throw ending(
                "the program tidemark-server is neither beside this one nor on the PATH; build it by 'make server'", .unavailable)
        }
        var pointers = arguments.map { strdup($0) } + [nil]
        execv(program, &pointers)
        throw ending("cannot start \(program): \(String(cString: strerror(errno)))", .unavailable)
    }

    /// Beside this program, or on the path.
    private static func path() -> String? {
        var folders: [String] = []
        if let own = Bundle.main.executableURL { folders.append(own.resolvingSymlinksInPath().deletingLastPathComponent().path) }
        folders += (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return folders.lazy.map { "\($0)/tidemark-server" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
