import Foundation
import TestSupport
import Testing

/// Goal: the tool asks a person before very many records change, and never makes a program wait for an answer. Method: real
/// processes on a pseudo terminal, with an answer that is typed ahead, and on a pipe into which no process writes.
@Suite(.timeLimit(.minutes(30))) struct ConfirmationTests {
    private let tool: Tool
    private let scratch: Scratch
    private var container: String { scratch.container.path }

    init() throws {
        tool = try Tool()
        scratch = try Scratch()
    }

    /// Imports so many records of type Note in one transaction.
    private func importNotes(_ count: Int) async throws {
        let manifest = try scratch.writeLines((0..<count).map { #"{"id":"n\#($0)","text":"x"}"# }, to: "notes.jsonl")
        let result = try await tool.run([
            "import", manifest.path, "--into", container, "--type", "Note", "--id", "id", "--plain-ids",
        ])
        try #require(result.status == 0, "\(result.errors)")
    }

    private func count() async throws -> Int {
        let list = try await tool.run(["records", container, "--type", "Note", "--json", "--limit", "1000"])
        return (try JSONSerialization.jsonObject(with: Data(list.output.utf8)) as? [Any])?.count ?? 0
    }

    private static let deletion = ["records", "delete", "CONTAINER", "--type", "Note", "--where", "text = 'x'"]
    private static let undoing = ["undo", "CONTAINER"]
    private static let questions = [
        (deletion, "Delete 101 records of Note? [y/N]"), (undoing, "Undo 101 changes of transaction 1? [y/N]"),
    ]

    private func words(_ command: [String]) -> [String] { command.map { $0 == "CONTAINER" ? container : $0 } }

    @Test(arguments: questions, ["n\n", "\n", "no\n", "yess\n", "\u{4}"])
    func `a command without a yes does nothing`(_ command: ([String], String), _ answer: String) async throws {
        try await importNotes(101)
        let result = try await tool.run(words(command.0), on: PseudoTerminal(typing: answer))
        #expect(result.status == 130)
        #expect(result.errors.contains(command.1) && result.errors.contains("tidemark: nothing was done"))
        #expect(result.output.isEmpty)
        #expect(try await count() == 101)
    }

    @Test(arguments: questions, ["y\n", " YES \n"])
    func `a command with a yes is done`(_ command: ([String], String), _ answer: String) async throws {
        try await importNotes(101)
        let result = try await tool.run(words(command.0), on: PseudoTerminal(typing: answer))
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.errors.contains(command.1))
        #expect(try await count() == 0)
    }

    @Test(arguments: [deletion, undoing])
    func `the tool does not ask below the limit, for a dry run, or after a yes in the command`(_ command: [String]) async throws {
        try await importNotes(101)
        for more in [["--dry-run"], ["--yes"]] {
            let result = try await tool.run(words(command) + more, on: PseudoTerminal(typing: ""))
            #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        }
        #expect(try await count() == 0)
        let few = try Scratch()
        try few.writeLines((0..<100).map { #"{"id":"n\#($0)","text":"x"}"# }, to: "notes.jsonl")
        _ = try await tool.run(["import", few["notes.jsonl"].path, "--into", few.container.path, "--type", "Note", "--id", "id"])
        let result = try await tool.run(
            command.map { $0 == "CONTAINER" ? few.container.path : $0 }, on: PseudoTerminal(typing: ""))
        #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
    }

    @Test(arguments: [deletion, undoing])
    func `the tool does not ask a program, and does not wait for a pipe without a writer`(_ command: [String]) async throws {
        try await importNotes(101)
        let pipe = scratch["pipe"]
        try #require(mkfifo(pipe.path, 0o600) == 0)
        // Opened for both, so that the process neither waits for a writer nor reads the pipe's end.
        let end = open(pipe.path, O_RDWR | O_CLOEXEC)
        defer { close(end) }
        let result = try await tool.run(words(command), input: pipe)
        #expect(result.status == 0 && result.errors.isEmpty, "\(result.errors)")
        #expect(try await count() == 0)
    }
}
