import ArgumentParser

/// `tidemark help`: the argument parser's own takes the name of a command that is none for a wish for the general help.
struct Help: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "help", abstract: "Shows how a command is used.", shouldDisplay: false)

    @Argument(help: "The command.")
    var command: String?

    func run() throws {
        let commands = Tidemark.configuration.subcommands
        guard let command else { return print(Tidemark.helpMessage()) }
        guard let named = commands.first(where: { $0._commandName == command }) else {
            throw ValidationError("there is no command '\(command)'")
        }
        print(Tidemark.helpMessage(for: named))
    }
}
