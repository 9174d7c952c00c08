import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: concurrent edits end as the merge policies say, in the store, in the result and in the log. Method: two contexts load
/// one record; one saves, then the other; whole records and logs compared.
@Suite(.timeLimit(.minutes(30))) struct ContextTests {
    struct Place: Tidemark.Record, Equatable {
        var id: String
        var caption: String?
        var details: String?
        var rating: Int?
        var recordName: String { id }
    }

    static let before = Place(id: "senja", caption: "c0", details: "d0", rating: 0)
    /// The record that the other context saves first: it changes caption and details.
    static let theirs = Place(id: "senja", caption: "their caption", details: "their details", rating: 0)
    /// The record that is saved next: it changes the caption, in conflict, and the rating.
    static let mine = Place(id: "senja", caption: "my caption", details: "d0", rating: 1)

    struct Outcome: Sendable, CustomTestStringConvertible {
        let policy: MergePolicy
        let place: Place?
        let winner: MergeConflict.Winner?
        var testDescription: String { policy.name }
    }

    static let outcomes: [Outcome] = [
        .init(
            policy: .mergeByPropertyStoreTrump,
            place: Place(id: "senja", caption: "their caption", details: "their details", rating: 1),
            winner: .store),
        .init(
            policy: .mergeByPropertyObjectTrump,
            place: Place(id: "senja", caption: "my caption", details: "their details", rating: 1),
            winner: .local),
        .init(policy: .overwrite, place: mine, winner: .local),
        .init(policy: .rollback, place: theirs, winner: .store),
        .init(
            policy: .latestEdit, place: Place(id: "senja", caption: "my caption", details: "their details", rating: 1),
            winner: .local),
        .init(
            policy: .custom(
                MergeRule { conflict in
                    guard case .string(let one) = conflict.local, case .string(let other) = conflict.store else { return nil }
                    return .string("\(one) + \(other)")
                }),
            place: Place(id: "senja", caption: "my caption + their caption", details: "their details", rating: 1), winner: .merged
        ),
        .init(policy: .error, place: nil, winner: nil),
    ]

    @Test(arguments: outcomes)
    func `two edits of one record end as the policy says`(outcome: Outcome) async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        try await journal.save(Self.before)
        let (first, second) = (journal.newContext(), other.newContext(mergePolicy: outcome.policy))
        _ = try await first.fetch(Place.self, named: "senja")
        _ = try await second.fetch(Place.self, named: "senja")
        try await first.update(Self.theirs)
        try await second.update(Self.mine)
        #expect(try await first.save().conflicts == [])
        guard let place = outcome.place else {
            let error = await #expect(throws: UnresolvedConflicts.self) { try await second.save() }
            #expect(error?.records.map(\.fields) == [["caption"]])
            #expect(error?.records.first?.ancestor?.values["caption"] == .string("c0"))
            #expect(error?.records.first?.local?.values["caption"] == .string("my caption"))
            #expect(error?.records.first?.store?.values["caption"] == .string("their caption"))
            // The edit is still there, and can be saved under another policy.
            #expect(await second.hasChanges)
            #expect(try await journal.fetch(Place.self, named: "senja") == Self.theirs)
            try await second.save(mergePolicy: .mergeByPropertyObjectTrump)
            #expect(try await journal.fetch(Place.self, named: "senja")?.caption == "my caption")
            return
        }
        let result = try await second.save()
        #expect(result.conflicts.contains { $0.field == "caption" && $0.winner == outcome.winner })
        #expect(result.conflicts.allSatisfy { $0.policy == outcome.policy.name })
        #expect(try await journal.fetch(Place.self, named: "senja") == place)
        #expect(try await second.fetch(Place.self, named: "senja") == place)
        let logged = try journal.history().conflicts()
        let caption = try #require(logged.first { $0.field == "caption" })
        #expect([caption.ancestor, caption.local, caption.store] == ["\"c0\"", "\"my caption\"", "\"their caption\""])
        #expect(caption.winner == outcome.winner && caption.record == "senja" && caption.policy == outcome.policy.name)
        if let transaction = result.transactions[.private] { #expect(caption.transaction == transaction) }
        #expect(await !second.hasChanges)
    }

    @Test(arguments: outcomes)
    func `an edit of a record that another context deleted brings it back or not, by the policy`(outcome: Outcome) async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        try await journal.save(Self.before)
        let second = other.newContext(mergePolicy: outcome.policy)
        _ = try await second.fetch(Place.self, named: "senja")
        try await second.update(Self.mine)
        try await journal.delete(Self.before)
        switch outcome.policy {
        case .error: await #expect(throws: UnresolvedConflicts.self) { try await second.save() }
        case .mergeByPropertyStoreTrump, .rollback:
            #expect(try await second.save().conflicts.map(\.winner) == [.store])
            #expect(try await journal.fetch(Place.self, named: "senja") == nil)
        default:
            #expect(try await second.save().conflicts.map(\.winner) == [.local])
            #expect(try await journal.fetch(Place.self, named: "senja") == Self.mine)
        }
    }

    @Test(arguments: outcomes)
    func `a deletion of a record that another context edited wins or not, by the policy`(outcome: Outcome) async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        try await journal.save(Self.before)
        let second = other.newContext(mergePolicy: outcome.policy)
        let loaded = try #require(try await second.fetch(Place.self, named: "senja"))
        try await second.delete(loaded)
        try await journal.save(Self.theirs)
        switch outcome.policy {
        case .error: await #expect(throws: UnresolvedConflicts.self) { try await second.save() }
        case .mergeByPropertyStoreTrump, .rollback:
            // Here the context with the deletion has not seen the edit: the deletion wins.
            _ = try await second.save()
            #expect(try await journal.fetch(Place.self, named: "senja") == nil)
        default:
            _ = try await second.save()
            #expect(try await journal.fetch(Place.self, named: "senja") == Self.theirs)
        }
    }

    @Test func `a save's policy comes before the context's, then the type's, then the container's`() async throws {
        struct Typed: Tidemark.Record, Equatable {
            static let mergePolicy: MergePolicy? = .mergeByPropertyStoreTrump
            var id: String
            var n: Int
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal(mergePolicy: .error)
        func winner(_ own: MergePolicy?, _ save: MergePolicy?) async throws -> Int? {
            try await journal.save(Typed(id: "a", n: 0))
            let context = journal.newContext(mergePolicy: own)
            _ = try await context.fetch(Typed.self, named: "a")
            try await context.update(Typed(id: "a", n: 1))
            try await journal.save(Typed(id: "a", n: 2))
            try await context.save(mergePolicy: save)
            return try await journal.fetch(Typed.self, named: "a")?.n
        }
        #expect(try await winner(nil, nil) == 2)
        #expect(try await winner(.mergeByPropertyObjectTrump, nil) == 1)
        #expect(try await winner(.mergeByPropertyObjectTrump, .rollback) == 2)
        // Without any of these the container's policy counts.
        try await journal.save(Self.before)
        let context = journal.newContext()
        _ = try await context.fetch(Place.self, named: "senja")
        try await context.update(Self.mine)
        try await journal.save(Self.theirs)
        await #expect(throws: UnresolvedConflicts.self) { try await context.save() }
    }

    @Test func `a context sees its own edits at once, and those of others when they are saved`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Self.before)
        let context = journal.newContext()
        await context.insert(Place(id: "new", caption: "new"))
        #expect(try await context.fetch(Place.self, named: "new")?.caption == "new")
        #expect(try await journal.fetch(Place.self, named: "new") == nil)
        var loaded = try #require(try await context.fetch(Place.self, named: "senja"))
        loaded.rating = 7
        try await context.update(loaded)
        #expect(try await context.fetchAll(Place.self).map(\.rating) == [7])
        let gone = Place(id: "new")
        try await context.delete(gone)
        #expect(try await context.save().counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetchAll(Place.self).map(\.rating) == [7])
        await #expect(throws: StoreError(.notFound, "")) { try await context.update(Place(id: "unknown")) }
        try await context.update(Place(id: "senja", rating: 8))
        await context.rollback()
        #expect(await !context.hasChanges)
        #expect(try await context.fetch(Place.self, named: "senja")?.rating == 7)
    }

    @Test func `records that a context fetched together are compared with their values at that time`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Place(id: "a", caption: "a"), Place(id: "b", caption: "b")])
        try await journal.save([Place(id: "c", caption: "c")], in: scratch.acceptedShare())
        let context = journal.newContext(mergePolicy: .error)
        var places = try await context.fetchAll(Place.self, sortedBy: [.ascending("caption")])
        #expect(places.map(\.id) == ["a", "b", "c"])
        try await journal.save(Place(id: "c", caption: "theirs"))
        for index in places.indices { places[index].rating = 1 }
        places[2].caption = "mine"
        for place in places { try await context.update(place) }
        #expect(try await context.fetchAll(Place.self).map(\.rating) == [1, 1, 1])
        let conflicts = try await #require(throws: UnresolvedConflicts.self) { try await context.save() }
        #expect(conflicts.records.map(\.record) == ["c"])
    }

    @Test func `refreshing fetches what others saved, and keeps the context's edits on top`() async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        let picture = Picture.png(3)
        var one = Destination("one", caption: "c0", details: "d0")
        one.tags = ["a"]
        try await journal.save([one, Destination("two", caption: "two"), Destination("three", caption: "three")])
        let context = journal.newContext()
        var mine = try #require(try await context.fetch(Destination.self, named: "one"))
        _ = try await context.fetchAll(Destination.self)
        mine.caption = "mine"
        mine.image = Asset(data: picture)
        try await context.update(mine)
        one.caption = "theirs"
        one.details = "their details"
        one.tags = ["b"]
        try await other.save(one)
        try await other.delete(Destination.self, named: "two")
        #expect(
            try await context.refreshAll() == [
                RecordName(type: "Destination", name: "one"), RecordName(type: "Destination", name: "two"),
            ])
        let merged = try #require(try await context.fetch(Destination.self, named: "one"))
        #expect([merged.caption, merged.details] == ["mine", "their details"])
        #expect(merged.tags == ["b"])
        #expect(try merged.image?.data() == picture)
        #expect(try await context.fetch(Destination.self, named: "two") == nil)
        // Refreshed values are in conflict no longer.
        #expect(try await context.save(mergePolicy: .error).conflicts == [])
        let stored = try #require(try await journal.fetch(Destination.self, named: "one"))
        #expect([stored.caption, stored.details] == ["mine", "their details"])
        #expect(try stored.image?.data() == picture)
    }

    @Test(.timeLimit(.minutes(30)))
    func `a context that merges automatically follows this process and others`() async throws {
        let scratch = try Scratch()
        let (journal, other) = (try scratch.journal(), try scratch.journal())
        try await journal.save(Self.before)
        let context = journal.newContext()
        await context.setAutomaticallyMergesChangesFromParent(true)
        _ = try await context.fetch(Place.self, named: "senja")
        for (container, caption) in [(other, "from another"), (journal, "from this one")] {
            try await container.save(Place(id: "senja", caption: caption))
            while try await context.fetch(Place.self, named: "senja")?.caption != caption {
                await Task.yield()
            }
        }
    }

    @Test func `an insert with an existing name merges as if both had made the record`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Place(id: "senja", caption: "theirs", details: "d"))
        let context = journal.newContext(mergePolicy: .mergeByPropertyStoreTrump)
        await context.insert(Place(id: "senja", caption: "mine", rating: 4))
        #expect(try await context.save().conflicts.map(\.field) == ["caption"])
        #expect(
            try await journal.fetch(Place.self, named: "senja") == Place(id: "senja", caption: "theirs", details: "d", rating: 4))
    }
}
