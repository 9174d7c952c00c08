import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: an open container reports that it has moved or was replaced, and reads nothing of its old files. Method: containers that
/// are open for writing, for reading and for following, while they are moved and restored.
@Suite(.timeLimit(.minutes(30))) struct MovedTests {
    struct Place: Tidemark.Record, Equatable {
        var id: String
        var recordName: String { id }
    }

    enum Fate: CaseIterable { case moved, replaced }

    /// A container with one record, and what happens to it.
    private func befall(_ fate: Fate, _ scratch: Scratch) async throws {
        switch fate {
        case .moved: try StoreMover(from: scratch.container, to: scratch["New.tidemark"]).run()
        case .replaced:
            let backup = try ContainerDirectory(openingAt: scratch["Backup.tidemark"])
            try ContainerRestoration(of: backup, to: scratch.container, replaces: true).run()
        }
    }

    @Test(.timeLimit(.minutes(30)), arguments: Fate.allCases)
    func `reading and following end with an error after a move or replacement`(fate: Fate) async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Place(id: "a"))
        try ContainerBackup(of: journal.directory, to: scratch["Backup.tidemark"]).run()
        try await journal.save(Place(id: "b"))
        let reader = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: scratch.container))
        #expect(try await reader.count(Place.self) == 2)
        var changes = reader.changes(since: try reader.historyToken()).makeAsyncIterator()
        var own = journal.changes(since: try journal.historyToken(), withOwn: true).makeAsyncIterator()
        var values = journal.observe(Place.self).makeAsyncIterator()
        #expect(try await values.next()?.count == 2)
        // Both followers listen.
        try await journal.save(Place(id: "c"))
        #expect(try await changes.next()?.changes.map(\.record.name) == ["c"])
        #expect(try await own.next()?.changes.map(\.record.name) == ["c"])
        #expect(try await values.next()?.count == 3)
        try await befall(fate, scratch)
        await #expect(throws: StoreError(.moved, "")) { try await reader.count(Place.self) }
        await #expect(throws: StoreError(.moved, "")) { try await journal.fetchAll(Place.self) }
        await #expect(throws: StoreError(.moved, "")) { try await journal.deleteAll(Place.self) }
        await #expect(throws: StoreError(.moved, "")) { _ = try await changes.next() }
        await #expect(throws: StoreError(.moved, "")) { _ = try await own.next() }
        await #expect(throws: StoreError(.moved, "")) { while try await values.next() != nil {} }
    }

    @Test func `a snapshot continues to see its state`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Place(id: "a"))
        let snapshot = try journal.snapshot()
        #expect(try await snapshot.count(Place.self) == 1)
        try await befall(.moved, scratch)
        #expect(try await snapshot.fetchAll(Place.self) == [Place(id: "a")])
    }
}
