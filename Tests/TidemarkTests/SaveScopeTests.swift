import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a save either stores its records or throws, in each scope and for each share. A container has no public store, which the
/// compiler checks: ``StoreScope`` has no such case.
@Suite(.timeLimit(.minutes(30))) struct SaveScopeTests {
    private typealias Place = ContextTests.Place

    private let scratch: Scratch
    private let journal: PersistentContainer

    init() throws {
        scratch = try Scratch()
        journal = try scratch.journal()
    }

    @Test func `the scopes of a container are those of a cloud without the public one`() {
        #expect(StoreScope.allCases.map(\.databaseScope) == [.private, .shared])
        #expect(DatabaseScope.allCases.map { StoreScope($0) } == [nil, .private, .shared])
        #expect(StoreScope.allCases.map(\.rawValue) == StoreScope.allCases.map(\.databaseScope.rawValue))
    }

    @Test func `a new record for the shared store is refused without a share, and nothing is stored`() async throws {
        let places = [Place(id: "a", caption: "a"), Place(id: "b", caption: "b")]
        let error = try await #require(throws: StoreError.self) { try await journal.save(places, in: .shared) }
        #expect(error.code == .invalid)
        #expect(
            error.message == """
                Place a is new, and the shared store has only records of shares: without a share it would never be sent. Save it into a share, or \
                into the private store
                """)
        #expect(try await journal.count(Place.self) == 0)
        #expect(try journal.history(.shared).transactions().isEmpty)
    }

    @Test func `a save into a missing share is refused, and makes no zone`() async throws {
        let theirs = Share(scope: .shared, zone: ZoneName("Trip", owner: "_anna"), name: "cloudkit.zoneshare", title: "Senja")
        let own = Share(scope: .private, zone: ZoneName("Trip"), name: "cloudkit.zoneshare")
        for share in [theirs, own] {
            let error = try await #require(throws: StoreError.self) {
                try await journal.save([Place(id: "a", caption: "a")], in: share)
            }
            #expect(error.code == .notFound && error.message.contains("'\(share.title ?? share.name)' is not in this container"))
            #expect(try journal.history(share.scope).zones().map(\.name) == [.default])
        }
        #expect(try await journal.count(Place.self) == 0)
    }

    @Test func `a save into a share that was stopped is refused`() async throws {
        let share = try scratch.acceptedShare()
        try await journal.save([Place(id: "a", caption: "a")], in: share)
        try SharedPlaces(scratch.container, .shared).run("DELETE FROM tide_shares")
        await #expect(throws: StoreError(.notFound, "")) { try await journal.save([Place(id: "b", caption: "b")], in: share) }
        // A share of that name in another zone is another share.
        let other = try scratch.acceptedShare(zone: 3)
        try await journal.save([Place(id: "c", caption: "c")], in: other)
        await #expect(throws: StoreError(.notFound, "")) { try await journal.save([Place(id: "b", caption: "b")], in: share) }
        #expect(try await journal.fetchAll(Place.self, sortedBy: [.ascending("caption")]).map(\.id) == ["a", "c"])
    }

    @Test func `a context inserts into a share, and keeps the insertion if the share is missing`() async throws {
        let share = try scratch.acceptedShare()
        let context = journal.newContext()
        await context.insert(Place(id: "a", caption: "a"), in: share)
        await context.insert(Place(id: "mine", caption: "mine"))
        let saved = try await context.save()
        #expect(Set(saved.transactions.keys) == [.shared, .private])
        #expect(try await context.fetch(Place.self, named: "a")?.caption == "a")
        #expect(await !context.hasChanges)

        let gone = Share(scope: .shared, zone: ZoneName("Gone", owner: "_anna"), name: "cloudkit.zoneshare")
        await context.insert(Place(id: "b", caption: "b"), in: gone)
        await #expect(throws: StoreError(.notFound, "")) { try await context.save() }
        #expect(await context.hasChanges)
        await context.rollback()
        await context.insert(Place(id: "b", caption: "b"), in: StoreScope.shared)
        await #expect(throws: StoreError(.invalid, "")) { try await context.save() }
        await context.insert(Place(id: "b", caption: "b"), in: share)
        #expect(try await context.save().counts.inserted == 1)
        #expect(try await journal.count(Place.self) == 3)
    }
}
