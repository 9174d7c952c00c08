import ArgumentParser
import Foundation

/// `tidemark serve`: becomes the program `tidemark-server`, which the tool itself can do without.
struct Serve: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Serves a cloud to devices and programs on other machines.",
        discussion: """
            The command starts tidemark-server, which 'make server' builds, and passes all options on; see 'tidemark serve --help'. With \
            --json it prints one JSON object with its address and port when it is reachable.

            Examples:
              tidemark serve --data /srv/cloud
              tidemark serve --data /srv/cloud --host 0.0.0.0 --port 443 --tls-cert fullchain.pem --tls-key privkey.pem
            """)

    @Argument(parsing: .captureForPassthrough, help: ArgumentHelp("Options of tidemark-server.", valueName: "option"))
    var options: [String] = []

    func run() throws {
        guard let program = Self.program() else {
            throw ending(
                "the program tidemark-server is neither beside this one nor on the PATH; build it by 'make server'", .unavailable)
        }
        // Its help and its errors name what was typed.
        var arguments = (["tidemark serve"] + options).map { strdup($0) } + [nil]
        execv(program, &arguments)
        throw ending("cannot start \(program): \(String(cString: strerror(errno)))", .unavailable)
    }

    /// Beside this program, or on the path.
    private static func program() -> String? {
        var folders: [String] = []
        if let own = Bundle.main.executableURL { folders.append(own.resolvingSymlinksInPath().deletingLastPathComponent().path) }
        folders += (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map(String.init)
        return folders.lazy.map { "\($0)/tidemark-server" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
