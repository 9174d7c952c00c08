public import ArgumentParser

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
        let help = HelpText.text { Tidemark.helpMessage(for: command, columns: $0) }
        guard outcome.json else { return print(help) }
        try outcome.tell("help", ["command": (["tidemark"] + path).joined(separator: " "), "text": help])
    }
}

/// The text of a help, in which each line of an example stays one line, so that it can be pasted.
enum HelpText {
    /// So wide that the parser breaks no line.
    private static let unbroken = 1_000_000

    /// Returns a help in which the parser has broken no line of an example.
    ///
    /// - Parameter help: The help that the parser makes for a width; `nil` for that of the terminal.
    static func text(_ help: (Int?) -> String) -> String { restoringExamples(in: help(nil), from: help(unbroken)) }

    /// Puts the lines of examples together again: in the overview, those that begin with spaces.
    ///
    /// - Parameters:
    ///   - broken: A help as the parser breaks its lines, at spaces.
    ///   - whole: The same help with unbroken lines.
    static func restoringExamples(in broken: String, from whole: String) -> String {
        let end = "\n\nUSAGE: "
        guard whole.hasPrefix("OVERVIEW: "), let wholeEnd = whole.firstRange(of: end), let brokenEnd = broken.firstRange(of: end)
        else {
            return broken
        }
        func lines(_ text: Substring) -> [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }
        var parts = lines(broken[..<brokenEnd.lowerBound])[...]
        var restored: [Substring] = []
        for line in lines(whole[..<wholeEnd.lowerBound]) {
            var (joined, used) = ("", 0)
            for part in parts {
                joined += used == 0 ? String(part) : " \(part)"
                used += 1
                if joined.count >= line.count { break }
            }
            guard joined == line else { return broken }
            if line.hasPrefix("  ") { restored.append(line) } else { restored += parts.prefix(used) }
            parts = parts.dropFirst(used)
        }
        return restored.joined(separator: "\n") + broken[brokenEnd.lowerBound...]
    }
}

extension ParsableCommand {
    /// Ends the program as an error of the parser asks for. If that is a request for help, lines of examples stay whole.
    public static func exitKeepingExamples(withError error: any Error) -> Never {
        guard exitCode(for: error) == .success else { exit(withError: error) }
        let text = HelpText.text { fullMessage(for: error, columns: $0) }
        if !text.isEmpty { print(text) }
        exit()
    }
}
