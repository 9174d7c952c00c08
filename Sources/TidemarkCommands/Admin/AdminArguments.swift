import ArgumentParser
import Foundation
import TidemarkModel

/// The arguments of a command of `tidemark admin`, with those from the environment and a configuration file.
///
/// The command line goes before the other sources. With `--data` on it, a database of another source does not count; with
/// `--database` on it, a directory of another source does not. If the other sources have both, the database counts, as for
/// `tidemark serve`.
struct AdminArguments {
    /// The arguments, as they are parsed.
    private(set) var arguments: [String]
    /// Whether the command needs a database, which only the program `tidemark-server` can open.
    private(set) var needsServer = false
    private var sources: OptionSources?

    /// The options that name a cloud's place.
    private static let names: Set = [
        "data", "config", "database", "assets", "s3-endpoint", "s3-region", "s3-style", "database-connections", "database-pooler",
        "database-direct",
    ]

    /// - Parameter given: The arguments of the command line; the first is `admin`.
    /// - Throws: `OptionSources.Failure`.
    init(_ given: [String], environment: [String: String]) throws {
        var command: any ParsableCommand.Type = Admin.self
        var depth = 1
        while depth < given.count,
            let next = command.configuration.subcommands.first(where: { $0._commandName == given[depth] })
        {
            command = next
            depth += 1
        }
        arguments = given
        guard command.configuration.subcommands.isEmpty, !given.contains("--help"), !given.contains("-h") else { return }
        let options = Array(given[depth...])
        if let name = Self.scope(in: options) {
            throw ValidationError(
                "--database takes the address of a PostgreSQL server, as postgresql://…; the \(name) database is chosen by "
                    + "--scope \(name)\(name == "public" ? "" : " --account <address>")")
        }
        func isGiven(_ name: String) -> Bool { options.contains { $0 == "--\(name)" || $0.hasPrefix("--\(name)=") } }
        var sources = try OptionSources(of: command, given: options, environment: environment, only: Self.names)
        if isGiven("data") {
            sources.remove(Self.names.subtracting(["data", "config"]))
        } else if isGiven("database") || sources.has("database") {
            sources.remove(["data"])
        }
        arguments = Array(given[..<depth]) + sources.arguments + options
        needsServer = isGiven("database") || sources.has("database") || command == AdminMove.self
        self.sources = sources
    }

    /// The scope after `--database`: CloudKit and the console call a scope the database.
    private static func scope(in options: [String]) -> String? {
        let values = zip(options, options.dropFirst()).filter { $0.0 == "--database" }.map(\.1)
        let joined = options.filter { $0.hasPrefix("--database=") }.map { String($0.dropFirst("--database=".count)) }
        return (values + joined).first { AdminScope(rawValue: $0) != nil }
    }

    /// The place of the option that a message of the parser is about; `nil` for an option on the command line.
    func place(of message: String) -> String? { sources?.place(of: message) }
}
