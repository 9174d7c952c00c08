import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: edits during a save or refresh of a context are neither lost nor in conflict with the context's own save. Method: a hook
/// of the record, which runs within the save, holds the save until the other edit is made.
@Suite(.timeLimit(.minutes(30))) struct ConcurrentEditTests {
    /// A gate at which a save waits, within its transaction, until something has happened.
    final class Gate: Sendable {
        private let (entered, hasEntered) = AsyncStream.makeStream(of: Void.self)
        private let passage = DispatchSemaphore(value: 0)

        func waitInside() {
            hasEntered.yield()
            passage.wait()
        }

        func open() { passage.signal() }

        func waitForEntry() async {
            var entries = entered.makeAsyncIterator()
            await entries.next()
        }
    }

    struct Place: Tidemark.Record, Equatable {
        var id: String
        var caption: String?
        var rating: Int?
        var recordName: String { id }

        func validate() throws {
            if caption?.hasPrefix("slow") == true { ConcurrentEditTests.gates.withLock { $0[id] }?.waitInside() }
        }
    }

    static let gates = LockedValue<[String: Gate]>([:])

    /// A context with one loaded record, and the gate at which saves of it wait while its caption begins with "slow".
    private func context(policy: MergePolicy) async throws -> (PersistentContainer, EditingContext, Gate, Place, Scratch) {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let id = UUID().uuidString.lowercased()
        try await journal.save(Place(id: id, caption: "first", rating: 0))
        let context = journal.newContext(mergePolicy: policy)
        let place = try #require(try await context.fetch(Place.self, named: id))
        let gate = Gate()
        Self.gates.withLock { $0[id] = gate }
        return (journal, context, gate, place, scratch)
    }

    @Test func `a value that is set back during a save stays set back`() async throws {
        let (journal, context, gate, first, scratch) = try await context(policy: .error)
        var place = first
        place.caption = "slow"
        try await context.update(place)
        async let saved = context.save()
        await gate.waitForEntry()
        try await context.update(first)
        gate.open()
        _ = try await saved
        #expect(try await context.fetch(Place.self, named: first.id) == first)
        #expect(try await context.save().counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetch(Place.self, named: first.id) == first)
        withExtendedLifetime(scratch) {}
    }

    @Test func `a second save waits for the first, and does not conflict with it`() async throws {
        let (journal, context, gate, first, scratch) = try await context(policy: .error)
        var place = first
        place.caption = "slow"
        try await context.update(place)
        async let saved = context.save()
        await gate.waitForEntry()
        place.caption = "second"
        try await context.update(place)
        async let savedAgain = context.save()
        async let refreshed = context.refreshAll()
        gate.open()
        let results = try await [saved, savedAgain]
        #expect(results.allSatisfy { $0.conflicts.isEmpty })
        _ = try await refreshed
        #expect(try await journal.fetch(Place.self, named: first.id)?.caption == "second")
        #expect(await !context.hasChanges)
        withExtendedLifetime(scratch) {}
    }

    @Test func `a record that is inserted while its deletion is saved is a new record`() async throws {
        let (journal, context, _, first, scratch) = try await context(policy: .error)
        let other = Place(id: "other", caption: "slow", rating: 1)
        let gate = Gate()
        Self.gates.withLock { $0["other"] = gate }
        // The save of the other record delays that of the deletion as well.
        await context.insert(other)
        try await context.delete(first)
        async let saved = context.save()
        await gate.waitForEntry()
        await context.insert(first)
        gate.open()
        _ = try await saved
        #expect(try await journal.fetch(Place.self, named: first.id) == nil)
        try await context.save()
        #expect(try await journal.fetch(Place.self, named: first.id) == first)
        withExtendedLifetime(scratch) {}
    }

    @Test func `a record of the shared store that is inserted again stays there`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Place(id: "shared", caption: "theirs")], in: scratch.acceptedShare())
        let context = journal.newContext()
        await context.insert(Place(id: "shared", caption: "mine"))
        #expect(try await context.save().transactions.keys.map(\.self) == [.shared])
        #expect(try await journal.count(Place.self) == 1)
        #expect(try await context.fetch(Place.self, named: "shared")?.caption == "mine")
        try await context.update(Place(id: "shared", caption: "mine again"))
        #expect(try await context.save().transactions.keys.map(\.self) == [.shared])
    }

    @Test func `one record that can't be read does not keep the others from being refreshed`() async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        struct Loose: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var caption: String?
            var rating: Int?
            var recordName: String { id }
        }
        struct Strict: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var caption: String
            var rating: Int?
            var recordName: String { id }
        }
        try await journal.save((0..<9).map { Loose(id: "\($0)", caption: "c", rating: 0) })
        let context = journal.newContext()
        _ = try await context.fetchAll(Strict.self)
        try await other.save((0..<9).map { Loose(id: "\($0)", caption: $0 == 4 ? nil : "d", rating: 1) })
        await #expect(throws: DecodingError.self) { try await context.refreshAll() }
        for number in 0..<9 where number != 4 {
            #expect(try await context.fetch(Strict.self, named: "\(number)")?.caption == "d")
        }
    }
}
