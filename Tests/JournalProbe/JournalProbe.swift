import Foundation
import TestSupport
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Edits a container at random, as one of several processes, and tells of every transaction what it did.
///
///     journal-probe CONTAINER SEED COUNT
///
/// Prints a ``ProbedEdit`` for each, in JSON.
@main
struct JournalProbe {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 4, let seed = UInt64(arguments[2]), let count = Int(arguments[3]) else {
            FileHandle.standardError.write(Data("usage: journal-probe CONTAINER SEED COUNT\n".utf8))
            exit(64)
        }
        let journal = try PersistentContainer(
            directory: ContainerDirectory(openingAt: URL(fileURLWithPath: arguments[1])), author: "probe \(seed)")
        var random = Randomness(seed: seed)
        for number in 0..<count { try await step(journal, &random, mark: "\(seed)-\(number)") }
    }

    private static func step(_ journal: PersistentContainer, _ random: inout Randomness, mark: String) async throws {
        let name = "n\(random.next() % 12)"
        switch random.next() % 10 {
        case 0..<3:
            let note = ProbedNote(id: name, a: random.number(), b: random.number(), c: mark)
            tell(try await journal.save(note), .save, [name], saved: note)
        case 3..<7:
            let context = journal.newContext()
            guard let loaded = try await context.fetch(ProbedNote.self, named: name) else { return }
            var edited = loaded
            if random.next() % 2 == 0 { edited.a = random.number() } else { edited.b = random.number() }
            if random.next() % 3 == 0 { edited.c = mark }
            try await context.update(edited)
            // So that others come between.
            try await Task.sleep(for: .milliseconds(Int(random.next() % 6)))
            tell(try await context.save(), .edit, [name], saved: edited, loaded: loaded)
        case 7:
            tell(try await journal.delete(ProbedNote.self, named: name), .delete, [name])
        case 8:
            let before = try journal.historyToken()
            let names = try await journal.deleteAll(ProbedNote.self, where: .field("a") == random.number())
            if !names.isEmpty { tell(try own(journal, since: before), .delete, names) }
        default:
            let before = try journal.historyToken()
            let names = try await journal.updateAll(ProbedNote.self, where: .field("b") == random.number(), set: ["c": mark])
            if !names.isEmpty { tell(try own(journal, since: before), .update, names, value: mark) }
        }
    }

    /// The transaction of a batch operation.
    private static func own(_ journal: PersistentContainer, since token: ContainerToken) throws -> SaveResult {
        let page = try journal.history().changes(since: token[.private])
        let mine = page.transactions.filter { $0.transaction.author == journal.author }
        return SaveResult(transaction: mine.last!.transaction.id, in: .private)
    }

    private static func tell(
        _ result: SaveResult, _ operation: ProbedEdit.Operation, _ names: [String], saved: ProbedNote? = nil,
        loaded: ProbedNote? = nil, value: String? = nil
    ) {
        guard let transaction = result.transactions[.private] else { return }
        let line = ProbedEdit(
            transaction: transaction, operation: operation, names: names, saved: saved, loaded: loaded, value: value)
        // Plain values.
        let data = try! JSONEncoder().encode(line)
        FileHandle.standardOutput.write(data + Data("\n".utf8))
    }
}

extension Randomness {
    fileprivate mutating func number() -> Int { Int(next() % 4) }
}
