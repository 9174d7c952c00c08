import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: history returns the changes since any token, with authors and times, and can undo them. Method: real containers; whole
/// records, changes and states compared.
@Suite(.timeLimit(.minutes(30))) struct HistoryTests {
    typealias Place = ContextTests.Place

    private func states(_ journal: PersistentContainer) async throws -> [Place] {
        try await journal.fetchAll(Place.self, sortedBy: [.ascending("id")])
    }

    @Test func `a token returns exactly the later changes, oldest first`() async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        try await journal.save([Place(id: "a", caption: "a"), Place(id: "b", caption: "b")])
        let token = try journal.history().historyToken()
        try await journal.save(Place(id: "a", caption: "a2", rating: 1))
        try await other.save(Place(id: "c", caption: "c"))
        try await other.delete(Place.self, named: "b")
        try await journal.delete(Place.self, named: "c")
        let page = try journal.history().changes(since: token)
        func change(_ name: String, _ kind: ChangeKind, _ fields: [String] = []) -> RecordChange {
            RecordChange(record: RecordName(type: "Place", name: name), kind: kind, fields: fields)
        }
        #expect(
            page.transactions.map(\.changes) == [
                [change("a", .update, ["caption", "rating"])], [change("c", .insert)], [change("b", .delete, ["caption"])],
                [change("c", .delete, ["caption"])],
            ])
        #expect(!page.hasMore)
        #expect(page.transactions.map(\.transaction.author) == Array(repeating: "test", count: 4))
        #expect(zip(page.transactions, page.transactions.dropFirst()).allSatisfy { $0.transaction.time < $1.transaction.time })
        #expect(try journal.history().changes(since: page.token).transactions == [])
        // In parts the changes are the same.
        var parts: [TransactionChanges] = []
        var next = token
        while true {
            let part = try journal.history().changes(since: next, limit: 1)
            parts += part.transactions
            next = part.token
            if !part.hasMore { break }
        }
        #expect(parts == page.transactions)
        // A token can be encoded and decoded.
        #expect(try JSONDecoder().decode(HistoryToken.self, from: JSONEncoder().encode(token)) == token)
        #expect(HistoryToken("\(token)") == token)
        #expect(HistoryToken("nonsense") == nil)
    }

    @Test func `a transaction that has moved records into a share can't be undone, and says so beforehand`() async throws {
        let scratch = try Scratch()
        let anna = try await TwoUserFixture(scratch).person("anna")
        let saved = try await anna.container.save(Place(id: "a", caption: "a"))
        try await anna.container.share(Place(id: "a", caption: "a"), in: anna.databases)
        let history = anna.container.history()
        let ids = try history.transactions().map(\.id)
        #expect(ids.count == 2 && ids[1] == saved.transactions[.private])
        #expect(try ids.map { try history.canUndo(transaction: $0) } == [false, true])
        await #expect(throws: StoreError(.invalid, "")) { try await anna.container.undo(transaction: ids[0]) }
        #expect(try !history.canUndo(transaction: 99))
        let now = Date()
        #expect(try history.transactions().allSatisfy { abs($0.date.timeIntervalSince(now)) < 3600 })
    }

    @Test func `a process gets the commits of others, once, and never its own`() async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        let share = try scratch.acceptedShare()
        let start = try journal.historyToken()
        var changes = journal.changes(since: start).makeAsyncIterator()
        for n in 0..<20 {
            try await journal.save(Place(id: "mine\(n)", caption: "x"))
            let theirs = Place(id: "theirs\(n)", caption: "x")
            if n % 2 == 0 { try await other.save(theirs) } else { try await other.save([theirs], in: share) }
            let change = try #require(try await changes.next())
            #expect(change.changes.map(\.record.name) == ["theirs\(n)"])
            #expect(change.origin == .anotherProcess)
            #expect(change.scope == (n % 2 == 0 ? .private : .shared))
        }
        // A follower with the earlier token gets all of it.
        var late = other.changes(since: start).makeAsyncIterator()
        for n in 0..<20 { #expect(try await late.next()?.changes.map(\.record.name) == ["mine\(n)"]) }
        // On request it gets its own as well.
        var all = journal.changes(since: start, withOwn: true).makeAsyncIterator()
        var origins: [ContainerChange.Origin: Int] = [:]
        for _ in 0..<40 { origins[try #require(try await all.next()).origin, default: 0] += 1 }
        #expect(origins == [.thisProcess: 20, .anotherProcess: 20])
    }

    @Test func `a token from before a purge is expired, and later ones are not`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Place(id: "a", caption: "a"))
        let early = try journal.history().historyToken()
        try await journal.save(Place(id: "b", caption: "b"))
        try await journal.delete(Place.self, named: "a")
        let late = try journal.history().historyToken()
        try await journal.save(Place(id: "c", caption: "c"))
        // No transaction is older than seven days.
        #expect(try await journal.purgeHistory(olderThan: .zero).transactions == 0)
        #expect(try await journal.purgeHistory(olderThan: .seconds(Int64.max), keepingAtLeast: .zero).transactions == 0)
        #expect(try journal.history().changes(since: early).transactions.count == 3)
        #expect(try await journal.purgeHistory(olderThan: .zero, keepingAtLeast: .zero).transactions == 3)
        #expect(throws: StoreError(.historyTokenExpired, "")) { try journal.history().changes(since: early) }
        #expect(try journal.history().changes(since: late).transactions.map { $0.changes.map(\.record.name) } == [["c"]])
        #expect(throws: StoreError(.historyTokenExpired, "")) {
            try journal.history().changes(since: HistoryToken("\(UUID()):1"))
        }
        let problems = try StoreVerification(of: journal.directory).run().problems
        #expect(problems == [], "\(problems)")
        #expect(try await states(journal).map(\.id) == ["b", "c"])
    }

    @Test func `conflicts of a save that changes nothing belong to no transaction`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Place(id: "a", caption: "0"))
        let context = journal.newContext(mergePolicy: .mergeByPropertyStoreTrump)
        _ = try await context.fetch(Place.self, named: "a")
        try await journal.save(Place(id: "a", caption: "theirs"))
        try await context.update(Place(id: "a", caption: "mine"))
        let result = try await context.save()
        #expect(result.counts.isUnchanged && result.conflicts.count == 1)
        try await journal.save(Place(id: "b", caption: "0"))
        #expect(try journal.history().conflicts().map(\.transaction) == [0])
    }

    @Test func `a store that a token does not know is reported from its beginning`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "caption": "0"}"#], .init(type: "Place", nameField: "id"))
        // An import makes no shared store.
        let reader = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: scratch.container))
        let token = try reader.historyToken()
        #expect(token[.shared] == nil)
        var running = reader.changes(since: token).makeAsyncIterator()
        let journal = try scratch.journal()
        try await journal.save([Place(id: "s", caption: "1")], in: scratch.acceptedShare())
        let heard = try #require(try await running.next())
        #expect(heard.scope == .shared && heard.changes.map(\.record.name) == ["s"])
        #expect(heard.token == (try journal.historyToken()))
        var later = try ReadOnlyContainer(directory: ContainerDirectory(openingAt: scratch.container)).changes(since: token)
            .makeAsyncIterator()
        #expect(try await later.next()?.changes.map(\.record.name) == ["s"])
    }

    @Test func `undoing a transaction restores the earlier values, and undoing the undo restores the later ones`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let context = journal.newContext()
        try await journal.save((0..<10).map { (n: Int) in Place(id: "p\(n)", caption: "c\(n)", rating: n) })
        let before = try await states(journal)
        // One transaction that inserts, updates and deletes.
        for place in before { _ = try await context.fetch(Place.self, named: place.id) }
        await context.insert(Place(id: "new", caption: "new"))
        try await context.update(Place(id: "p1", caption: "edited", details: "more"))
        try await context.delete(before[2])
        let result = try await context.save()
        #expect(result.counts == ChangeCounts(inserted: 1, updated: 1, deleted: 1))
        let after = try await states(journal)
        let undo = try await journal.undo(transaction: result.transactions[.private]!)
        #expect(undo.counts == ChangeCounts(inserted: 1, updated: 1, deleted: 1))
        #expect(try await states(journal) == before)
        try await journal.undo(transaction: undo.transactions[.private]!)
        #expect(try await states(journal) == after)
        #expect(try journal.history().transactions().map(\.origin) == [.undo, .undo, .save, .save])
        await #expect(throws: StoreError(.notFound, "")) { try await journal.undo(transaction: 99) }
        let problems = try StoreVerification(of: journal.directory).run().problems
        #expect(problems == [], "\(problems)")
    }

    @Test func `values that were changed since are undone only with a policy`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([
            Place(id: "a", caption: "0", rating: 0), Place(id: "b", caption: "0"), Place(id: "c", caption: "0"),
        ])
        let edit = try await journal.save([Place(id: "a", caption: "1", rating: 1), Place(id: "b", caption: "1")])
        try await journal.save(Place(id: "a", caption: "2", rating: 1))
        let transaction = edit.transactions[.private]!
        let error = await #expect(throws: UnresolvedConflicts.self) { try await journal.undo(transaction: transaction) }
        #expect(error?.records.map(\.record) == ["a"])
        #expect(try await states(journal).map(\.caption) == ["2", "1", "0"])
        let result = try await journal.undo(transaction: transaction, mergePolicy: .mergeByPropertyStoreTrump)
        #expect(
            try await states(journal) == [
                Place(id: "a", caption: "2", rating: 0), Place(id: "b", caption: "0"), Place(id: "c", caption: "0"),
            ])
        #expect(result.conflicts.map(\.field) == ["caption"])
        // The first transaction is undone except for later changes.
        await #expect(throws: UnresolvedConflicts.self) { try await journal.undo(transaction: 1) }
        try await journal.undo(transaction: 1, mergePolicy: .mergeByPropertyStoreTrump)
        // Of the later changes only one caption is left.
        #expect(try await states(journal).map(\.id) == ["a"])
    }

    @Test func `a load of many records is undone except for records that were edited since`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(
            lines: (0..<3000).map { n in #"{"id": "p\#(n)", "caption": "c"}"# }, .init(type: "Place", nameField: "id"))
        let journal = try scratch.journal()
        try await journal.save(Place(id: "p7", caption: "edited"))
        try await journal.delete(Place.self, named: "p8")
        await #expect(throws: UnresolvedConflicts.self) { try await journal.undo(transaction: 1) }
        let result = try await journal.undo(transaction: 1, mergePolicy: .mergeByPropertyStoreTrump)
        #expect(result.counts.deleted == 2998)
        #expect(try await states(journal).map(\.id) == ["p7"])
        try await journal.undo(transaction: result.transactions[.private]!)
        try await journal.undo(transaction: 1, mergePolicy: .mergeByPropertyObjectTrump)
        #expect(try await states(journal) == [])
    }

    @Test func `records with equal unique keys are merged into the one with the lowest name`() async throws {
        struct Tag: Tidemark.Record, Equatable {
            static let uniqueKeys = [UniqueKey("word")]
            var id: String
            var word: String?
            var color: String?
            var count: Int?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Tag(id: "m", word: "fjord", color: "blue", count: 1))
        let result = try await journal.save(Tag(id: "x", word: "fjord", color: "red"))
        #expect(result.replaced == [RecordName(type: "Tag", name: "x"): "m"])
        // The later edit counts as the local side.
        #expect(try await journal.fetchAll(Tag.self) == [Tag(id: "m", word: "fjord", color: "red", count: 1)])
        try await journal.save(Tag(id: "a", word: "fjord"))
        #expect(try await journal.fetchAll(Tag.self) == [Tag(id: "a", word: "fjord", color: "red", count: 1)])
        // Records without a value in the key are not merged.
        try await journal.save([Tag(id: "n1"), Tag(id: "n2")])
        #expect(try await journal.count(Tag.self) == 3)
        // Under the policy error it is a conflict like every other.
        let context = journal.newContext(mergePolicy: .error)
        await context.insert(Tag(id: "z", word: "fjord", color: "yellow"))
        await #expect(throws: UnresolvedConflicts.self) { try await context.save() }
        // An update can make keys equal, too, and so can an import.
        try await journal.save(Tag(id: "n1", word: "fjord", color: "green"))
        #expect(try await journal.fetch(Tag.self, named: "a")?.color == "green")
        try await scratch.importing(lines: [#"{"id": "0", "word": "fjord", "count": 9}"#], .init(type: "Tag", nameField: "id"))
        #expect(
            try await journal.fetchAll(Tag.self, sortedBy: [.ascending("id")]) == [
                Tag(id: "0", word: "fjord", color: "green", count: 9), Tag(id: "n2"),
            ])
        let problems = try StoreVerification(of: journal.directory).run().problems
        #expect(problems == [], "\(problems)")
    }
}
