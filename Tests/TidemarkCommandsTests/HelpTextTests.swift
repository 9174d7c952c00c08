import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import TidemarkCommands

/// Goal: an example in a help text can be pasted, however narrow the terminal. Method: the help of each command at several
/// widths, compared with the text from which it is made; the tool in a narrow terminal.
@Suite(.timeLimit(.minutes(30))) struct HelpTextTests {
    private static var commands: [any ParsableCommand.Type] { all(Tidemark.self) }

    private static func all(_ command: any ParsableCommand.Type) -> [any ParsableCommand.Type] {
        [command] + command.configuration.subcommands.flatMap { all($0) }
    }

    private func examples(_ command: any ParsableCommand.Type) -> [Substring] {
        command.configuration.discussion.split(separator: "\n").filter { $0.hasPrefix("  ") }
    }

    @Test(arguments: [36, 60, 80, 132]) func `no line of an example is broken`(width: Int) {
        #expect(Self.commands.count > 100)
        for command in Self.commands {
            let help = HelpText.text { Tidemark.helpMessage(for: command, columns: $0 ?? width) }
            let lines = Set(help.split(separator: "\n"))
            for example in examples(command) { #expect(lines.contains(example), "\(command): \(example)") }
            // Other text is wrapped as usual.
            let usage = help.range(of: "\n\nUSAGE: ")?.lowerBound ?? help.endIndex
            let text = help[..<usage].split(separator: "\n").filter { !$0.hasPrefix("  ") && $0.contains(" ") }
            #expect(text.allSatisfy { $0.count <= width || $0.split(separator: " ").count < 3 }, "\(command)")
        }
    }

    @Test func `a line that is continued ends in a backslash, and the next one is indented`() {
        for command in Self.commands {
            var goesOn = false
            for example in examples(command) {
                #expect(example.hasPrefix("      ") == goesOn, "\(command): \(example)")
                goesOn = example.hasSuffix(" \\")
            }
            #expect(!goesOn, "\(command)")
        }
    }

    @Test(arguments: [["admin", "schema", "index", "--help"], ["help", "admin", "schema", "index"], ["admin", "schema"]])
    func `the tool prints examples whole in a narrow terminal`(arguments: [String]) async throws {
        let result = try await Tool().run(arguments, environment: ["COLUMNS": "50"])
        #expect(result.status == 0 && result.errors.isEmpty)
        #expect(
            result.output.contains(
                """
                  tidemark admin schema index --container journal --type Destination --field title \\
                      --queryable --sortable --data ~/cloud

                """), "\(result.output)")
        #expect(result.output.hasPrefix("OVERVIEW: ") && result.output.contains("\n\nUSAGE: tidemark admin schema"))
    }

    @Test func `the version is printed alone, and a usage error exits with 64`() async throws {
        let version = try await Tool().run(["--version"])
        #expect(version.status == 0 && version.output == "\(Tidemark.configuration.version)\n")
        let mistake = try await Tool().run(["records", "list"])
        #expect(mistake.status == 64 && mistake.output.isEmpty && mistake.errors.hasPrefix("tidemark: "))
    }

    @Test func `the message for an unknown command ends with a sentence`() {
        #expect(
            Tidemark.misspeltCommand(in: ["admin", "schema", "xyzzy"])?.hasSuffix(
                "freeze, remove, reset. 'tidemark admin schema --help' tells more") == true)
        #expect(
            Tidemark.misspeltCommand(in: ["admin", "schema", "dif"])
                == "there is no command 'tidemark admin schema dif'; did you mean 'diff'? 'tidemark admin schema --help' tells more"
        )
    }

    @Test func `defaults are words, and comparators are listed`() {
        let help = Tidemark.helpMessage(for: AdminRecordsList.self, columns: 1_000)
        #expect(help.contains("(default: public; private with --account) (values: public, private, shared)"))
        for name in ["EQUALS", "GREATER_THAN_OR_EQUALS", "NOT_LIST_MEMBER_BEGINS_WITH"] { #expect(help.contains(name)) }
    }
}
