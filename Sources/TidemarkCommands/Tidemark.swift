public import ArgumentParser
import Foundation
import Logging
import TidemarkModel

/// The command-line tool.
public struct Tidemark: AsyncParsableCommand {
    public static let configuration = CommandConfiguration(
        commandName: "tidemark",
        abstract: "The record store that syncs and shares, everywhere Swift runs.",
        discussion: """
            Examples:
              tidemark import Examples/journal/journal.jsonl --into MyJournal.tidemark \\
                  --type Destination --id id --asset image
              tidemark records MyJournal.tidemark --type Destination --sort createdAt \\
                  --descending --limit 10
              tidemark verify MyJournal.tidemark

            Exit codes: 0 done; 1 verify found problems; 64 wrong usage; 65 some rows were refused, the rest is imported; 66 the source \
            can't be read, a record is not there; 69 history was purged, or no account is signed in; 73 the target can't be created; 74 \
            a file can't be read or written, or the disk is full; 75 the store is in use, or a sync is not complete; 77 a folder can't \
            be trusted, or the permission is missing; 130 interrupted; 141 the output's reader has ended.
            """,
        version: "0.1.0",
        subcommands: [
            Import.self, Records.self, Index.self, Export.self, Verify.self, History.self, Undo.self, Watch.self, Schema.self,
            Assets.self, Store.self,
            Account.self,
            Sync.self, Status.self, Events.self, Conflicts.self, Quarantines.self, Permissions.self, Shares.self, Refused.self,
            Serve.self, Admin.self, Help.self, Manual.self,
        ])

    /// Logs errors, or what `TIDEMARK_LOG` names (trace, debug, info, notice, warning, error), to standard error. With `sql` in it, as in
    /// `debug,sql`, `SQLTrace` writes statements there.
    public static func logToStandardError() {
        let words = ProcessInfo.processInfo.environment["TIDEMARK_LOG"]?.split(separator: ",").map(String.init) ?? []
        let level = words.lazy.compactMap(Logger.Level.init(rawValue:)).first ?? .error
        LoggingSystem.bootstrap { label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = level
            return handler
        }
    }

    /// Runs the command that arguments name, and exits.
    public static func run(_ arguments: [String]) async {
        // The tool speaks English, wherever it runs.
        ErrorLanguage.use(.english)
        if let message = misspeltCommand(in: arguments) { exit(withError: ending(message, .usage)) }
        guard arguments.first != "admin" else { return await administer(arguments) }
        do {
            var command = try await asyncParseAsRoot(arguments)
            if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
        } catch {
            exitKeepingExamples(withError: error)
        }
    }

    /// Runs a command of `tidemark admin`. A command that concerns a database is run by the program `tidemark-server`.
    private static func administer(_ given: [String]) async {
        let admin: AdminArguments
        do {
            admin = try AdminArguments(given, environment: ProcessInfo.processInfo.environment)
            if admin.needsServer, AdminDatabases.opener == nil { try ServerProgram.start(["tidemark"] + given) }
        } catch let failure as OptionSources.Failure {
            exit(withError: ending(failure.message, failure.isOfFile ? .noInput : .usage))
        } catch {
            exit(withError: error)
        }
        do {
            var command = try parseAsRoot(admin.arguments)
            if var command = command as? any AsyncParsableCommand { try await command.run() } else { try command.run() }
            await AdminDatabases.opener?.close()
        } catch {
            await AdminDatabases.opener?.close()
            if exitCode(for: error) == .validationFailure, let place = admin.place(of: message(for: error)) {
                Output.error("tidemark: \(place) is wrong:")
            }
            exitKeepingExamples(withError: error)
        }
    }

    /// The message about a word on the command line that stands in the place of a command but is none; `nil` if there is no such
    /// word.
    public static func misspeltCommand(in arguments: some Sequence<String>) -> String? {
        var command: any ParsableCommand.Type = Tidemark.self
        var path = ["tidemark"]
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            guard !subcommands.isEmpty, !argument.hasPrefix("-") else { return nil }
            path.append(argument)
            if let next = subcommands.first(where: { $0._commandName == argument }) {
                command = next
                continue
            }
            let names = subcommands.filter { $0.configuration.shouldDisplay }.map { $0._commandName }
            let near = Suggestion.nearest(to: argument, among: names)
            if command.configuration.defaultSubcommand != nil {
                // The default command takes the word, usually as the path of a container.
                guard near != nil, !FileManager.default.fileExists(atPath: argument) else { return nil }
            }
            let all = path.dropLast().joined(separator: " ")
            let remedy = near.map { "did you mean '\($0)'?" } ?? "there are \(names.joined(separator: ", "))."
            return "there is no command '\(Output.printable(path.joined(separator: " ")))'; \(remedy) '\(all) --help' tells more"
        }
        return nil
    }

    /// One prefix for the errors of the command line and for all others.
    public static var _errorPrefix: String { "tidemark: " }

    public init() {}
}
