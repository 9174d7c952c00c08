import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: records are found and counted along references, with one query for all of them.
/// Method: a few trips, stops and tags with known answers, in a separate container for each test.
@Suite(.timeLimit(.minutes(30))) struct ReferenceTests {
    struct Tag: Tidemark.Record, Equatable {
        var id: String
        var isPrivate = false
        var recordName: String { id }
    }

    struct Trip: Tidemark.Record, Identifiable, Equatable {
        var id = UUID()
        var title: String
    }

    struct Stop: Tidemark.Record, Equatable {
        var id: String
        var nights = 1
        var trip: Reference<Trip>?
        var tags: [Reference<Tag>] = []
        var type: String?
        var value: Int?
        var recordName: String { id }
    }

    /// A container with two trips that have stops, and one that has none.
    private struct Journal {
        let container: PersistentContainer
        let north = Trip(title: "North")
        let south = Trip(title: "South")
        let empty = Trip(title: "Empty")

        init(_ scratch: Scratch) async throws {
            container = try scratch.journal()
            try await container.save([north, south, empty])
            try await container.save([Tag(id: "fjord"), Tag(id: "own", isPrivate: true), Tag(id: "unused")])
            try await container.save([
                Stop(id: "senja", nights: 2, trip: Reference(north), tags: [Reference("fjord"), Reference("own")]),
                Stop(id: "narvik", trip: Reference(north), tags: [Reference("fjord"), Reference("fjord")]),
                Stop(id: "oslo", nights: 3, trip: Reference(south)), Stop(id: "nowhere"),
            ])
        }
    }

    @Test func `a reference fetches its record, and many of them fetch theirs with one query`() async throws {
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        #expect(try await all.fetch(Reference(journal.north)) == journal.north)
        #expect(try await all.fetch(Reference<Trip>("gone")) == nil)
        let upper = Reference<Trip>(journal.south.id.uuidString)
        let found = try await all.fetchAll([Reference(journal.north), upper, Reference("gone")])
        #expect(found == [Reference(journal.north): journal.north, upper: journal.south])
        #expect(try await all.fetchAll([Reference<Trip>]()) == [:])
        let tags = (0..<40_000).map { Tag(id: "tag-\($0)") }
        try await all.save(tags)
        #expect(try await all.fetchAll(tags.map { Reference($0) }).count == 40_000)
    }

    @Test func `each of several records has the list of those that refer to it`() async throws {
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        let trips = [journal.north, journal.south, journal.empty]
        let stops = try await all.fetchAll(Stop.self, referringTo: trips, by: \.trip, sortedBy: [.ascending(\.nights)])
        #expect(stops.count == 3)
        #expect(stops[Reference(journal.north)]?.map(\.id) == ["narvik", "senja"])
        #expect(stops[Reference(journal.south)]?.map(\.id) == ["oslo"])
        #expect(stops[Reference(journal.empty)] == [])
        let long = try await all.fetchAll(Stop.self, referringTo: trips, by: \.trip, where: \.nights > 1)
        #expect(long[Reference(journal.north)]?.map(\.id) == ["senja"])
        // A record is in the list of each record that its list names, and once in each.
        let tags = try await all.fetchAll(Tag.self)
        let byTag = try await all.fetchAll(Stop.self, referringTo: tags, by: \.tags)
        #expect(
            byTag.mapValues { $0.map(\.id) } == [
                Reference("fjord"): ["senja", "narvik"], Reference("own"): ["senja"], Reference("unused"): [],
            ])
    }

    @Test func `each of several records has the number of those that refer to it`() async throws {
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        let trips = [journal.north, journal.south, journal.empty]
        #expect(
            try await all.counts(Stop.self, referringTo: trips, by: \.trip)
                == [Reference(journal.north): 2, Reference(journal.south): 1, Reference(journal.empty): 0])
        #expect(
            try await all.counts(Stop.self, referringTo: trips, by: \.trip, where: \.nights > 1)
                == [Reference(journal.north): 1, Reference(journal.south): 1, Reference(journal.empty): 0])
        #expect(try await all.counts(Stop.self, referringTo: [journal.empty], by: \.trip).count == 1)
        // A record whose list names another twice counts once.
        let tags = try await all.fetchAll(Tag.self)
        #expect(
            try await all.counts(Stop.self, referringTo: tags, by: \.tags)
                == [Reference("fjord"): 2, Reference("own"): 1, Reference("unused"): 0])
        #expect(
            try await all.counts(Stop.self, referringTo: tags, by: \.tags, where: .sql("nights = ? AND value IS NULL", 2))
                == [Reference("fjord"): 1, Reference("own"): 1, Reference("unused"): 0])
    }

    @Test func `UUIDs in references and in names are found in either case`() async throws {
        struct Named: Tidemark.Record {
            static let recordType = "Trip"
            var id: String
            var title: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        // Imports write names in this case, and Swift writes UUIDs in the other.
        let upper = UUID().uuidString
        try await all.save(Named(id: upper, title: "Imported"))
        try await all.save([
            Stop(id: "lower", trip: Reference(upper.lowercased())), Stop(id: "upper", trip: Reference(upper)),
            Stop(id: "swift", trip: Reference(journal.empty.id.uuidString)),
        ])
        let imported = try #require(try await all.fetch(Trip.self, named: upper))
        let trips = [imported, journal.empty]
        #expect(
            try await all.counts(Stop.self, referringTo: trips, by: \.trip)
                == [Reference(imported): 2, Reference(journal.empty): 1])
        let stops = try await all.fetchAll(Stop.self, referringTo: trips, by: \.trip)
        #expect(stops[Reference(imported)]?.map(\.id) == ["lower", "upper"])
        #expect(stops[Reference(journal.empty)]?.map(\.id) == ["swift"])
        #expect(try await all.fetchAll(Trip.self, where: !.isReferenced(by: \Stop.trip)) == [])
        #expect(
            try await all.fetchAll(Stop.self, where: .field(\.trip).matches(\.title == "Imported")).map(\.id)
                == ["lower", "upper"])
        #expect(try await all.fetchAll(Stop.self, where: \.trip == imported).map(\.id) == ["lower", "upper"])
        #expect(try await all.fetchAll(Stop.self, where: \.trip == journal.empty).map(\.id) == ["swift"])
        let references = [Reference<Named>(upper.lowercased()), Reference(upper)]
        #expect(try await all.fetchAll(references).mapValues(\.title) == [references[0]: "Imported", references[1]: "Imported"])
    }

    @Test func `a type that the store does not have yet refers to nothing`() async throws {
        let scratch = try Scratch()
        let container = try scratch.journal()
        let trip = Trip(title: "First")
        try await container.save(trip)
        #expect(try await container.counts(Stop.self, referringTo: [trip], by: \.trip) == [Reference(trip): 0])
        #expect(try await container.fetchAll(Stop.self, referringTo: [trip], by: \.trip) == [Reference(trip): []])
        #expect(try await container.fetchAll(Trip.self, where: .isReferenced(by: \Stop.trip)) == [])
        #expect(try await container.fetchAll(Trip.self, where: !.isReferenced(by: \Stop.trip)) == [trip])
        // A type without a single value in the field.
        try await container.save(Stop(id: "alone"))
        #expect(try await container.counts(Stop.self, referringTo: [trip], by: \.trip) == [Reference(trip): 0])
        #expect(try await container.fetchAll(Stop.self, where: .field(\.tags).matches(\.isPrivate == true)) == [])
    }

    @Test func `predicates follow references, in both directions and over several steps`() async throws {
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        func stops(_ predicate: Tidemark.RecordPredicate<Stop>) async throws -> [String] {
            try await all.fetchAll(Stop.self, where: predicate).map(\.id)
        }
        func trips(_ predicate: Tidemark.RecordPredicate<Trip>) async throws -> [String] {
            try await all.fetchAll(Trip.self, where: predicate).map(\.title)
        }
        #expect(try await stops(.field(\.trip).matches(\.title == "North")) == ["senja", "narvik"])
        #expect(try await stops(!.field(\.trip).matches(\.title == "North")) == ["oslo", "nowhere"])
        #expect(try await stops(.field(\.trip).matches(\.id == journal.south.id) && \.nights == 3) == ["oslo"])
        #expect(try await stops(.field(\.tags).matches(\.isPrivate == true)) == ["senja"])
        #expect(try await trips(.isReferenced(by: \Stop.trip)) == ["North", "South"])
        #expect(try await trips(!.isReferenced(by: \Stop.trip)) == ["Empty"])
        #expect(try await trips(.isReferenced(by: \Stop.trip, where: \.nights > 2)) == ["South"])
        // Trips with a stop that has a private tag, and all stops of these trips.
        let isPrivate = Tidemark.RecordPredicate<Trip>.isReferenced(
            by: \Stop.trip, where: .field(\.tags).matches(\.isPrivate == true))
        #expect(try await trips(isPrivate && \.title != "South") == ["North"])
        #expect(try await stops(.field(\.trip).matches(isPrivate) && \.nights == 1) == ["narvik"])
        #expect(
            try await all.fetchAll(Tag.self, where: .isReferenced(by: \Stop.tags, where: \.nights == 1)).map(\.id)
                == ["fjord"])
        #expect(try await all.count(Stop.self, where: .field(\.trip).matches(\.title == "North")) == 2)
        // A batch operation finds the same records.
        #expect(try await all.deleteAll(Stop.self, where: .field(\.trip).matches(\.title == "South")) == ["oslo"])
    }

    @Test func `a list that is named like a column of SQLite's json_each is searched like any other`() async throws {
        struct Route: Tidemark.Record {
            var id: String
            var path: [Reference<Stop>] = []
            var value: [Reference<Stop>]?
            var parent: [String] = []
            var key: [Int] = []
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        try await all.save([
            Route(id: "a", path: [Reference("senja")], value: [Reference("oslo")], parent: ["north"], key: [7]), Route(id: "b"),
        ])
        func routes(_ predicate: Tidemark.RecordPredicate<Route>) async throws -> [String] {
            try await all.fetchAll(Route.self, where: predicate).map(\.id)
        }
        #expect(try await routes(.field(\.path).matches(\.nights == 2)) == ["a"])
        #expect(try await routes(!.field(\.path).matches(\.nights == 2)) == ["b"])
        #expect(try await routes(.field(\.value).contains(Reference("oslo"))) == ["a"])
        #expect(try await routes(.field(\.parent).contains("north")) == ["a"])
        #expect(try await routes(.field(\.key).contains(7)) == ["a"])
        let senja = try #require(try await all.fetch(Stop.self, named: "senja"))
        #expect(try await all.counts(Route.self, referringTo: [senja], by: \.path) == [Reference("senja"): 1])
        #expect(try await all.fetchAll(Stop.self, where: .isReferenced(by: \Route.path)).map(\.id) == ["senja"])
    }

    @Test func `a field that is no reference in the store is refused`() async throws {
        struct Text: Tidemark.Record {
            static let recordType = "Stop"
            var id: String
            var trip: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let container = try scratch.journal()
        let trip = Trip(title: "First")
        try await container.save(trip)
        try await container.save(Text(id: "a", trip: trip.recordName))
        await #expect(throws: StoreError(.invalid, "")) {
            try await container.counts(Stop.self, referringTo: [trip], by: \.trip)
        }
        await #expect(throws: StoreError(.invalid, "")) {
            try await container.fetchAll(Trip.self, where: .isReferenced(by: \Stop.trip))
        }
    }

    @Test func `an observed list follows the records that its predicate reads along references`() async throws {
        let scratch = try Scratch()
        let journal = try await Journal(scratch)
        let all = journal.container
        var lists = all.observe(Trip.self, where: .isReferenced(by: \Stop.trip)).makeAsyncIterator()
        #expect(try await lists.next()?.map(\.title) == ["North", "South"])
        try await all.save(Stop(id: "late", trip: Reference(journal.empty)))
        #expect(try await lists.next()?.map(\.title) == ["North", "South", "Empty"])
    }
}
