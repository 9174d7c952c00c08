public import ArgumentParser

/// `tidemark help`. The argument parser's own help command shows the general help for the name of a command that does not exist.
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

/// Makes help texts in which each line of an example stays one line, so that it can be pasted.
enum HelpText {
    /// A width at which the parser breaks no line.
    private static let unbroken = 1_000_000

    /// Returns a help text in which no line of an example is broken.
    ///
    /// - Parameter help: Makes the parser's help text for a width; `nil` for the terminal's.
    static func text(_ help: (Int?) -> String) -> String { restoringExamples(in: help(nil), from: help(unbroken)) }

    /// Joins the broken lines of examples again. In the overview of a help text, examples begin with spaces.
    ///
    /// - Parameters:
    ///   - broken: The help text with lines that the parser has broken at spaces.
    ///   - whole: The same help text with unbroken lines.
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
    /// Ends the program with an error of the parser. If the error is a request for help, lines of examples stay whole.
    public static func exitKeepingExamples(withError error: any Error) -> Never {
        guard exitCode(for: error) == .success else { exit(withError: error) }
        let text = HelpText.text { fullMessage(for: error, columns: $0) }
        if !text.isEmpty { print(text) }
        exit()
    }
}
