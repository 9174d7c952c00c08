import ArgumentParser
import Foundation

/// Asks before a command changes many records.
struct Confirmation: ParsableArguments {
    /// The most records that are changed without a question.
    static let limit = 100

    @Flag(name: [.customLong("yes"), .customShort("y")], help: "Does not ask for confirmation.")
    var yes = false

    /// Whether the command asks.
    var isAsking: Bool { !yes && isatty(STDIN_FILENO) == 1 }

    /// Asks on a terminal, if more than ``limit`` records are changed. A program that runs the tool is not asked, because its
    /// standard input is no terminal.
    ///
    /// - Throws: The exit code of an interruption when the answer is no, or the input ends.
    func ask(_ question: String, count: Int) throws {
        guard count > Self.limit else { return }
        try ask(question)
    }

    /// Asks on a terminal, whatever the number of changes.
    ///
    /// - Throws: The exit code of an interruption when the answer is no, or the input ends.
    func ask(_ question: String) throws {
        guard isAsking else { return }
        let text = Data("\(Output.printable(question)) [y/N] ".utf8)
        // The question goes to the person even where errors go to a file. If it can't be shown, there is no answer, which means
        // no.
        if isatty(STDERR_FILENO) == 0, let terminal = FileHandle(forWritingAtPath: "/dev/tty") {
            try? terminal.write(contentsOf: text)
        } else {
            try? FileHandle.standardError.write(contentsOf: text)
        }
        let answer = readLine()?.trimmingCharacters(in: .whitespaces).lowercased()
        guard answer == "y" || answer == "yes" else { throw ending("nothing was done", .interrupted) }
    }
}

/// Asks on a terminal for a name before something is lost for good. Without a terminal nobody can answer.
///
/// - Returns: Whether the name was typed.
func isTyped(_ question: String, _ name: String) -> Bool {
    guard isatty(STDIN_FILENO) == 1 else { return false }
    Output.error(question)
    return readLine()?.trimmingCharacters(in: .whitespaces) == name
}
