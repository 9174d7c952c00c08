import ArgumentParser

/// `tidemark help`: the argument parser's own takes the name of a command that is none for a request for the general help.
struct Help: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "help", abstract: "Shows the help of a command.", shouldDisplay: false)

    @Argument(help: ArgumentHelp("The command.", valueName: "command"))
    var path: [String] = []

    @OptionGroup var outcome: Outcome

    func run() throws {
        var command: any ParsableCommand.Type = Tidemark.self
        for name in path {
            guard let named = command.configuration.subcommands.first(where: { $0._commandName == name }) else {
                throw ValidationError("there is no command '\(path.joined(separator: " "))'")
            }
            command = named
        }
        let help = Tidemark.helpMessage(for: command)
        guard outcome.json else { return print(help) }
        try outcome.tell("help", ["command": (["tidemark"] + path).joined(separator: " "), "text": help])
    }
}
