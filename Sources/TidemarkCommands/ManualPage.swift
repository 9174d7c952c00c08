/// A command's help as ArgumentParser writes it with `--experimental-dump-help`: the source of a manual page.
struct CommandHelp: Decodable {
    struct Dump: Decodable { let command: CommandHelp }

    struct Argument: Decodable {
        struct Name: Decodable { let kind, name: String }

        let kind: String
        let shouldDisplay: Bool
        let isOptional: Bool
        let isRepeating: Bool
        let names: [Name]?
        let valueName: String?
        let abstract: String?
        let discussion: String?
        let defaultValue: String?
        let allValues: [String]?
    }

    let commandName: String
    let superCommands: [String]?
    let abstract: String?
    let discussion: String?
    let shouldDisplay: Bool
    let arguments: [Argument]?
    let subcommands: [CommandHelp]?

    /// `tidemark account sign-in`.
    var fullName: String { ((superCommands ?? []) + [commandName]).joined(separator: " ") }
}

/// The manual page of a command and all of its subcommands, in the language of man(7).
struct ManualPage {
    /// The page's source.
    private(set) var text = ""

    /// - Parameters:
    ///   - section: 1 for commands, 8 for programs of administrators.
    ///   - seeAlso: The names of related pages.
    init(of command: CommandHelp, section: Int, version: String, seeAlso: [String]) {
        line(".TH \(Self.quoted(command.commandName.uppercased())) \(section) \"\" \(Self.quoted("Tidemark \(version)"))")
        line(".SH NAME")
        paragraph("\(command.commandName) - \((command.abstract ?? "").trimmingSuffix("."))", begins: false)
        line(".SH SYNOPSIS")
        synopsis(command)
        if let discussion = command.discussion {
            line(".SH DESCRIPTION")
            paragraphs(discussion)
        }
        options(command, heading: ".SH OPTIONS")
        let commands = Self.visible(command)
        if !commands.isEmpty {
            line(".SH COMMANDS")
            for subcommand in commands { describe(subcommand) }
        }
        if !seeAlso.isEmpty {
            line(".SH SEE ALSO")
            for (index, page) in seeAlso.enumerated() {
                line(".BR \(Self.escaped(page)) (\(page.hasSuffix("-server") ? 8 : 1))\(index == seeAlso.count - 1 ? "" : " ,")")
            }
        }
    }

    /// The subcommands that the help shows, each once. `help` is left out, because the page has all that it shows.
    private static func visible(_ command: CommandHelp) -> [CommandHelp] {
        var names: Set<String> = []
        return (command.subcommands ?? []).filter {
            $0.shouldDisplay && $0.commandName != "help" && names.insert($0.commandName).inserted
        }
    }

    private mutating func describe(_ command: CommandHelp) {
        let commands = Self.visible(command)
        // A group of commands without arguments of its own gets no section.
        if commands.isEmpty || !(command.arguments ?? []).allSatisfy({ $0.kind != "positional" }) {
            line(".SS \(Self.quoted(command.fullName))")
            if let abstract = command.abstract { paragraph(abstract, begins: false) }
            line(".PP")
            synopsis(command)
            if let discussion = command.discussion { paragraphs(discussion) }
            options(command, heading: nil)
        }
        for subcommand in commands { describe(subcommand) }
    }

    private mutating func synopsis(_ command: CommandHelp) {
        var words = [Self.bold(command.fullName)]
        for argument in command.arguments ?? [] where argument.shouldDisplay && !Self.isOfEveryCommand(argument) {
            let word = argument.kind == "positional" ? Self.italic(argument.valueName ?? "") : Self.usage(argument)
            let repeated = argument.isRepeating ? "\(word) ..." : word
            words.append(argument.isOptional ? "[\(repeated)]" : repeated)
        }
        if !Self.visible(command).isEmpty { words.append(Self.italic("command")) }
        line(words.joined(separator: " "))
    }

    private mutating func options(_ command: CommandHelp, heading: String?) {
        let shown = (command.arguments ?? []).filter { $0.shouldDisplay && !Self.isOfEveryCommand($0) }
        guard !shown.isEmpty else { return }
        if let heading { line(heading) }
        for argument in shown {
            line(".TP")
            line(argument.kind == "positional" ? Self.italic(argument.valueName ?? "") : Self.usage(argument, all: true))
            var told = argument.abstract ?? ""
            if let value = argument.defaultValue, !value.isEmpty, argument.kind != "flag" { told += " (default: \(value))" }
            paragraph(told.isEmpty ? "(no description)" : told, begins: false)
            if let discussion = argument.discussion { paragraphs(discussion, indented: true) }
        }
    }

    private static func isOfEveryCommand(_ argument: CommandHelp.Argument) -> Bool {
        argument.names?.contains { $0.name == "help" || $0.name == "version" } ?? false
    }

    private static func usage(_ argument: CommandHelp.Argument, all: Bool = false) -> String {
        let names = (argument.names ?? []).map { bold(($0.kind == "long" ? "--" : "-") + $0.name) }
        let shown = all ? names.joined(separator: ", ") : names.last ?? ""
        guard argument.kind == "option" else { return shown }
        return "\(shown) \(italic(argument.valueName ?? "value"))"
    }

    // Text

    private mutating func line(_ line: String) { text += line + "\n" }

    private mutating func paragraph(_ words: String, begins: Bool = true) {
        if begins { line(".PP") }
        line(Self.escaped(words))
    }

    /// Adds paragraphs. Lines that begin with spaces are examples, and stay as they are.
    private mutating func paragraphs(_ text: String, indented: Bool = false) {
        var isExample = false
        line(indented ? ".IP" : ".PP")
        for row in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let isNext = row.hasPrefix("  ")
            if isNext != isExample { line(isNext ? ".PP\n.nf" : ".fi") }
            isExample = isNext
            if !row.allSatisfy(\.isWhitespace) {
                line(Self.escaped(String(row)))
            } else if !isExample {
                line(indented ? ".IP" : ".PP")
            }
        }
        if isExample { line(".fi") }
    }

    private static func bold(_ text: String) -> String { "\\fB\(escaped(text))\\fR" }
    private static func italic(_ text: String) -> String { "\\fI\(escaped(text))\\fR" }
    private static func quoted(_ text: String) -> String { "\"\(escaped(text).replacing("\"", with: "\\(dq"))\"" }

    /// A text in which man(7) finds no request, no escape, and no hyphen at which it may break a line.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\(rs"
            case "-": escaped += "\\-"
            case "'": escaped += "\\(aq"
            case "`": escaped += "\\(ga"
            case "^": escaped += "\\(ha"
            case "~": escaped += "\\(ti"
            case ".": escaped += escaped.isEmpty ? "\\&." : "."
            default: escaped.unicodeScalars.append(scalar.properties.generalCategory == .control ? " " : scalar)
            }
        }
        return escaped
    }
}

extension String {
    fileprivate func trimmingSuffix(_ suffix: String) -> String { hasSuffix(suffix) ? String(dropLast(suffix.count)) : self }
}
