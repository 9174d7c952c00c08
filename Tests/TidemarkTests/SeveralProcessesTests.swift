import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: changes of one store by several processes end as the rules say, in any order. Method: real processes; the store
/// afterwards is compared with the table of merge policies, or with a model that makes the same changes in the order of history.
@Suite(.timeLimit(.minutes(30))) struct SeveralProcessesTests {
    typealias Place = ContextTests.Place

    @Test(arguments: ContextTests.outcomes)
    func `an edit here and one of another process end as the policy says`(outcome: ContextTests.Outcome) async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(ContextTests.before)
        let context = journal.newContext(mergePolicy: outcome.policy)
        _ = try await context.fetch(Place.self, named: "senja")
        let other = try await Tool().run([
            "records", "set", scratch.container.path, "senja", "caption=their caption", "details=their details",
        ])
        #expect(other.status == 0, "\(other.errors)")
        try await context.update(ContextTests.mine)
        if let place = outcome.place {
            try await context.save()
            #expect(try await journal.fetch(Place.self, named: "senja") == place)
        } else {
            await #expect(throws: UnresolvedConflicts.self) { try await context.save() }
            #expect(try await journal.fetch(Place.self, named: "senja") == ContextTests.theirs)
        }
    }

    @Test(arguments: ContextTests.outcomes)
    func `an edit here and a deletion by another process end as the policy says`(outcome: ContextTests.Outcome) async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(ContextTests.before)
        let context = journal.newContext(mergePolicy: outcome.policy)
        _ = try await context.fetch(Place.self, named: "senja")
        let other = try await Tool().run(["records", "delete", scratch.container.path, "senja"])
        #expect(other.status == 0, "\(other.errors)")
        try await context.update(ContextTests.mine)
        switch outcome.policy {
        case .error: await #expect(throws: UnresolvedConflicts.self) { try await context.save() }
        case .mergeByPropertyStoreTrump, .rollback:
            try await context.save()
            #expect(try await journal.fetch(Place.self, named: "senja") == nil)
        default:
            try await context.save()
            #expect(try await journal.fetch(Place.self, named: "senja") == ContextTests.mine)
        }
    }

    // Random edits

    /// The expected contents of the store after the operations, in the order of their transactions.
    private func model(_ edits: [ProbedEdit]) throws -> [String: ProbedNote] {
        var notes: [String: ProbedNote] = [:]
        for edit in edits.sorted(by: { $0.transaction < $1.transaction }) {
            switch edit.operation {
            case .save: notes[edit.names[0]] = edit.saved
            case .delete: for name in edit.names { notes[name] = nil }
            case .update: for name in edit.names { notes[name]?.c = edit.value }
            case .edit:
                let (saved, loaded) = (try #require(edit.saved), try #require(edit.loaded))
                // A record that another process has deleted is restored as a whole.
                guard var note = notes[saved.id] else {
                    notes[saved.id] = saved
                    continue
                }
                if saved.a != loaded.a { note.a = saved.a }
                if saved.b != loaded.b { note.b = saved.b }
                if saved.c != loaded.c { note.c = saved.c }
                notes[saved.id] = note
            }
        }
        return notes
    }

    @Test func `random edits by three processes give the records of a model, and history has each transaction`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(ProbedNote(id: "first", a: 99))
        let start = try journal.historyToken()
        var random = Randomness("random edits by three processes")
        let seeds = (0..<3).map { _ in UInt64.random(in: 1...1 << 40, using: &random) }
        let probe = try Tool(named: "journal-probe")
        let path = scratch.container.path
        let outputs = try await withThrowingTaskGroup(of: String.self) { group in
            for seed in seeds {
                group.addTask {
                    let result = try await probe.run([path, "\(seed)", "150"])
                    #expect(result.status == 0, "\(result.errors)")
                    return result.output
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let edits = try outputs.flatMap { $0.split(separator: "\n") }.map { line in
            try JSONDecoder().decode(ProbedEdit.self, from: Data(line.utf8))
        }
        var expected = try model(edits)
        expected["first"] = expected["first"] ?? ProbedNote(id: "first", a: 99)
        let stored = try await journal.fetchAll(ProbedNote.self)
        #expect(Dictionary(uniqueKeysWithValues: stored.map { ($0.id, $0) }) == expected, "seeds \(seeds)")
        // From the beginning, each transaction is returned once.
        let page = try journal.history().changes(since: start[.private])
        #expect(page.transactions.map(\.transaction.id) == edits.map(\.transaction).sorted())
        let problems = try StoreVerification(of: journal.directory).run().problems
        #expect(problems == [], "\(problems)")
    }
}
