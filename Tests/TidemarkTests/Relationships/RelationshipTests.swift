import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: the delete rules hold for every writer, and owned records are deleted with their owner. Method: trips with stops,
/// photos, tags and bookings with known answers, in a separate container for each test.
@Suite(.timeLimit(.minutes(30))) struct RelationshipTests {
    typealias Trip = Travel.Trip
    typealias Stop = Travel.Stop
    typealias Photo = Travel.Photo
    typealias Tag = Travel.Tag
    typealias Guide = Travel.Guide
    typealias Booking = Travel.Booking

    private let scratch: Scratch
    private let journal: PersistentContainer

    init() async throws {
        scratch = try Scratch()
        journal = try scratch.journal()
        try await journal.save([
            Trip(id: "norway"), Trip(id: "privat"), Tag(id: "fjord", name: "fjord"), Tag(id: "rain", name: "rain"),
            Guide(id: "kari"),
            Stop(
                id: "senja", trip: Reference("norway"), day: 2, tags: [Reference("rain"), Reference("fjord")],
                guide: Reference("kari")),
            Stop(id: "narvik", trip: Reference("norway"), day: 1, tags: [Reference("fjord")]),
            Stop(id: "hut", trip: Reference("privat"), tags: [Reference("fjord")]),
            Photo(id: "p1", stop: Reference("senja")), Photo(id: "p2", stop: Reference("senja")), Photo(id: "loose"),
        ])
    }

    private func names<R: Tidemark.Record>(_ type: R.Type) async throws -> [String] {
        try await journal.fetchAll(type).map(\.recordName).sorted()
    }

    @Test
    func `a deletion of an owner deletes its owned records, over all steps, in one transaction that can be undone`() async throws
    {
        let result = try await journal.delete(Trip(id: "norway"))
        #expect(result.counts.deleted == 5)
        #expect(Set(result.cascaded.map(\.name)) == ["senja", "narvik", "p1", "p2"])
        #expect(try await names(Stop.self) == ["hut"])
        #expect(try await names(Photo.self) == ["loose"])
        #expect(try await names(Tag.self) == ["fjord", "rain"])
        let transaction = try #require(result.transactions[.private])
        _ = try await journal.undo(transaction: transaction)
        #expect(try await names(Stop.self) == ["hut", "narvik", "senja"])
        #expect(try await names(Photo.self) == ["loose", "p1", "p2"])
        #expect(try await journal.fetchAll(Trip.stops, of: Trip(id: "norway")).map(\.id) == ["narvik", "senja"])
    }

    @Test func `a context forgets records that were deleted with others, and restores none of them`() async throws {
        let context = journal.newContext()
        let trip = try #require(try await context.fetch(Trip.self, named: "norway"))
        var senja = try #require(try await context.fetch(Stop.self, named: "senja"))
        try await context.delete(trip)
        try await context.save()
        #expect(try await context.fetch(Stop.self, named: "senja") == nil)
        senja.title = "again"
        let again = senja
        await #expect(throws: StoreError(.notFound, "")) { try await context.update(again) }
        try await context.save()
        #expect(try await names(Stop.self) == ["hut"])
    }

    @Test func `a record with a damaged list does not prevent queries over the others`() async throws {
        try DamagedRows.run(scratch.container.appendingPathComponent("private.sqlite")) { db in
            try db.execute(sql: "UPDATE \"Stop\" SET tags = '[\"fj' WHERE _key = 'narvik'")
        }
        let fjord = Tag(id: "fjord", name: "fjord")
        #expect(
            try await journal.fetchAll(Stop.self, where: .field(\.tags).contains(Reference(fjord))).map(\.id).sorted() == [
                "hut", "senja",
            ])
        #expect(try await journal.fetchAll(Tag.stops, of: fjord).map(\.id).sorted() == ["hut", "senja"])
        #expect(try await journal.counts(Tag.stops, of: [fjord])[Reference(fjord)] == 2)
        #expect(
            try await journal.graph(of: [RecordName(type: "Trip", name: "privat")]).map(\.name).sorted() == ["hut", "privat"])
    }

    @Test func `a list and an optional reference lose a deleted record, and the list keeps its order`() async throws {
        try await journal.delete(Tag(id: "fjord", name: "fjord"))
        try await journal.delete(Guide(id: "kari"))
        let senja = try await journal.fetch(Stop.self, named: "senja")
        #expect(senja?.tags == [Reference("rain")])
        #expect(senja?.guide == nil)
        #expect(try await journal.fetch(Stop.self, named: "narvik")?.tags == [])
    }

    @Test func `a record that denies a deletion keeps its target, and the error names both`() async throws {
        try await journal.save(Booking(id: "b1", trip: Reference("norway")))
        let error = await #expect(throws: DeletionDenied.self) { try await journal.delete(Trip(id: "norway")) }
        let booking = RecordName(type: "Booking", name: "b1")
        #expect(
            error?.refusals == [
                .init(record: RecordName(type: "Trip", name: "norway"), reason: .isReferredTo(by: booking, field: "trip"))
            ])
        #expect(error?.localizedDescription.contains("Booking b1 refers to Trip norway by 'trip'") == true)
        #expect(try await names(Stop.self) == ["hut", "narvik", "senja"])
        // A booking that is deleted in the same save denies nothing.
        let context = journal.newContext()
        let trip = try #require(try await context.fetch(Trip.self, named: "norway"))
        let b1 = try #require(try await context.fetch(Booking.self, named: "b1"))
        try await context.delete(trip)
        try await context.delete(b1)
        try await context.save()
        #expect(try await names(Stop.self) == ["hut"])
    }

    @Test func `a deletion by a query follows the rules, and so does an undo`() async throws {
        #expect(try await journal.deleteAll(Trip.self, where: \.id == "privat") == ["privat"])
        #expect(try await names(Stop.self) == ["narvik", "senja"])
        let made = try await journal.save(Trip(id: "south"))
        try await journal.save([Stop(id: "oslo", trip: Reference("south"))])
        _ = try await journal.undo(transaction: try #require(made.transactions[.private]))
        #expect(try await names(Stop.self) == ["narvik", "senja"])
    }

    @Test func `10,000 deletions in one save follow the rules`() async throws {
        let trips = (0..<10_000).map { Trip(id: "t\($0)") }
        try await journal.save(trips)
        try await journal.save((0..<20_000).map { Stop(id: "s\($0)", trip: Reference("t\($0 % 10_000)")) })
        #expect(try await journal.deleteAll(Trip.self, where: .sql("_name LIKE 't%'")).count == 10_000)
        #expect(try await names(Stop.self) == ["hut", "narvik", "senja"])
    }

    @Test func `references follow a record that is merged with another of its unique key`() async throws {
        // The record with the lowest name stays.
        let result = try await journal.save([
            Tag(id: "a", name: "fjord"), Stop(id: "oslo", trip: Reference("privat"), tags: [Reference("a"), Reference("fjord")]),
        ])
        #expect(result.replaced == [RecordName(type: "Tag", name: "fjord"): "a"])
        #expect(try await names(Tag.self) == ["a", "rain"])
        #expect(try await journal.fetch(Stop.self, named: "senja")?.tags == [Reference("rain"), Reference("a")])
        #expect(try await journal.fetch(Stop.self, named: "narvik")?.tags == [Reference("a")])
        #expect(try await journal.fetch(Stop.self, named: "oslo")?.tags == [Reference("a")])
    }

    @Test func `UUIDs in upper and lower case are equal`() async throws {
        let id = UUID().uuidString
        try await journal.save([Trip(id: id.lowercased()), Stop(id: "x", trip: Reference(id.uppercased()))])
        try await journal.delete(Trip.self, named: id.uppercased())
        #expect(try await journal.fetch(Stop.self, named: "x") == nil)
    }

    @Test func `a changed rule is stored with the next save, or when the types are declared`() async throws {
        struct Strict: Tidemark.Record {
            static let recordType = "Stop"
            var id: String
            var trip: Reference<Trip>
            var recordName: String { id }
            static var relationships: [Relationship<Strict>] { [.owned(by: \.trip, onDelete: .deny)] }
        }
        try await journal.declare([Strict.self])
        await #expect(throws: DeletionDenied.self) { try await journal.delete(Trip(id: "norway")) }
        try await journal.declare(Travel.types)
        try await journal.delete(Trip(id: "norway"))
        #expect(try await names(Stop.self) == ["hut"])
    }

    @Test func `a type with two owners is refused`() async throws {
        struct Twin: Tidemark.Record {
            var id: String
            var one: Reference<Trip>?
            var other: Reference<Stop>?
            var recordName: String { id }
            static var relationships: [Relationship<Twin>] { [.owned(by: \.one), .owned(by: \.other)] }
        }
        let twin = Twin(id: "t", one: Reference("norway"), other: Reference("senja"))
        let error = await #expect(throws: StoreError.self) { try await journal.save(twin) }
        #expect(error?.message.contains("'one' and 'other'") == true)
    }

    @Test func `a newer owner replaces the former one, and deletions follow it`() async throws {
        struct Newer: Tidemark.Record {
            static let recordType = "Stop"
            var id: String
            var guide: Reference<Guide>?
            var recordName: String { id }
            static var relationships: [Relationship<Newer>] { [.owned(by: \.guide)] }
        }
        try await journal.save(Newer(id: "oslo", guide: Reference("kari")))
        #expect(try await journal.graph(of: [RecordName(type: "Trip", name: "norway")]).map(\.name) == ["norway"])
        let owned = try await journal.graph(of: [RecordName(type: "Guide", name: "kari")]).map(\.name)
        #expect(Set(owned) == ["kari", "senja", "oslo", "p1", "p2"])
        try await journal.delete(Trip(id: "norway"))
        #expect(try await names(Newer.self) == ["hut", "oslo"])
    }

    @Test func `a relationship to an invalid record type is refused, and nothing is saved`() async throws {
        struct Nowhere: Tidemark.Record {
            static let recordType = "no type"
            var id: String
            var recordName: String { id }
        }
        struct Lost: Tidemark.Record {
            var id: String
            var place: Reference<Nowhere>?
            var recordName: String { id }
            static var relationships: [Relationship<Lost>] { [.weak(\.place)] }
        }
        let error = await #expect(throws: StoreError.self) {
            try await journal.save(Lost(id: "l", place: Reference("somewhere")))
        }
        #expect(error?.code == .schema)
        #expect(error?.message.contains("'no type' cannot name the target of a relationship") == true)
        #expect(try await names(Stop.self) == ["hut", "narvik", "senja"])
        #expect(try StoreReader(container: journal.directory).types().contains { $0.name == "Lost" } == false)
    }

    @Test func `verify names records without their owner, and references to missing records`() async throws {
        try await journal.save([
            Stop(id: "lost", trip: Reference("gone"), tags: [Reference("none")]), Photo(id: "p3", stop: Reference("senja")),
        ])
        let report = try StoreVerification(of: try ContainerDirectory(openingAt: scratch.container)).run()
        #expect(report.problems.map(\.kind) == [.relationship, .relationship])
        #expect(
            Set(report.problems.map(\.message)) == [
                "Stop lost belongs to Trip gone by 'trip', and there is no such record",
                "Stop lost refers to Tag none by 'tags', and there is no such record",
            ])
    }

    @Test func `an impossible rule in a store is damage, and is reported`() async throws {
        let file = journal.directory.store(.private)
        try DamagedRows.run(file) { db in
            try db.execute(
                sql: """
                    UPDATE tide_relationships SET delete_rule = 'explode' WHERE field = 'guide';
                    UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation'
                    """)
        }
        let error = await #expect(throws: StoreError.self) { try await journal.delete(Trip(id: "norway")) }
        #expect(error?.code == .corrupt && error?.message.contains("explode") == true)
    }

    @Test func `a damaged record is deleted with its owner, and keeps a reference that it would lose`() async throws {
        try DamagedRows.run(journal.directory.store(.private)) { db in
            try db.execute(sql: "UPDATE Stop SET title = 'x' WHERE _key = 'senja'")
        }
        try await journal.delete(Tag(id: "fjord", name: "fjord"))
        let tags = try DamagedRows.run(journal.directory.store(.private)) { db in
            try String.fetchAll(db, sql: "SELECT tags FROM Stop ORDER BY _key")
        }
        #expect(tags == ["[]", "[]", #"["rain","fjord"]"#])
        try await journal.delete(Trip(id: "norway"))
        #expect(try await names(Stop.self) == ["hut"])
    }
}
