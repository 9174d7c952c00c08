import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

/// Goal: owned records are shared with their owner, and no other records. Method: containers of two people over one real cloud.
@Suite(.timeLimit(.minutes(30))) struct RelationshipSharingTests {
    typealias Trip = Travel.Trip
    typealias Stop = Travel.Stop
    typealias Photo = Travel.Photo
    typealias Tag = Travel.Tag
    typealias Booking = Travel.Booking

    private let scratch: Scratch
    private let anna: Person
    private let ben: Person

    init() async throws {
        scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        (anna, ben) = (try await place.person("anna"), try await place.person("ben"))
        // Ben's records are fetched from the cloud, which has no rules.
        try await ben.container.declare(Travel.types)
        try await anna.container.save([
            Trip(id: "norway"), Trip(id: "privat"), Tag(id: "fjord", name: "fjord"),
            Stop(id: "senja", trip: Reference("norway"), tags: [Reference("fjord")]),
            Stop(id: "hut", trip: Reference("privat"), tags: [Reference("fjord")]), Photo(id: "p1", stop: Reference("senja")),
        ])
    }

    /// Anna shares the trip with Ben, and both synchronise.
    @discardableResult
    private func share(_ permission: ShareParticipant.Permission = .readWrite) async throws -> Share {
        let (share, link) = try await anna.share(Trip(id: "norway"), with: ben, permission)
        try await anna.sync()
        _ = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        return share
    }

    private func names<R: Tidemark.Record>(_ type: R.Type, _ person: Person) async throws -> [String] {
        try await person.container.fetchAll(type).map(\.recordName).sorted()
    }

    private func shared(_ type: String, _ name: String, _ person: Person) async throws -> Bool {
        let record = RecordName(type: type, name: name)
        return try await person.container.fetchShares(matching: [record])[record] != nil
    }

    @Test func `a shared trip takes its stops and photos, and not the other trip of the same tag`() async throws {
        try await share()
        #expect(try await names(Trip.self, ben) == ["norway"])
        #expect(try await names(Stop.self, ben) == ["senja"])
        #expect(try await names(Photo.self, ben) == ["p1"])
        #expect(try await names(Tag.self, ben) == [])
        #expect(try await shared("Stop", "hut", anna) == false)
        let graph = try await anna.container.graph(of: [RecordName(type: "Trip", name: "norway")])
        #expect(Set(graph.map(\.name)) == ["norway", "senja", "p1"])
        // Sharing a single stop does not share its trip.
        #expect(try await anna.container.graph(of: [RecordName(type: "Stop", name: "hut")]).map(\.name) == ["hut"])
    }

    @Test func `a new stop of a shared trip is shared, by either person, by a save or a context`() async throws {
        try await share()
        // The photo comes before the stop that it belongs to.
        try await anna.container.save([Photo(id: "p2", stop: Reference("narvik")), Stop(id: "narvik", trip: Reference("norway"))])
        let context = anna.container.newContext()
        await context.insert(Stop(id: "oslo", trip: Reference("norway")))
        try await context.save()
        try await ben.container.save([Photo(id: "p3", stop: Reference("bergen")), Stop(id: "bergen", trip: Reference("norway"))])
        let other = ben.container.newContext()
        await other.insert(Photo(id: "p4", stop: Reference("senja")))
        try await other.save()
        let stops = ["bergen", "narvik", "oslo", "senja"]
        for _ in 0..<2 { for person in [anna, ben] { try await person.sync() } }
        #expect(try await names(Stop.self, ben) == stops)
        #expect(try await names(Photo.self, ben) == ["p1", "p2", "p3", "p4"])
        for name in stops { #expect(try await shared("Stop", name, anna)) }
        for name in ["p1", "p2", "p3", "p4"] { #expect(try await shared("Photo", name, anna)) }
    }

    @Test func `a stop whose reference has the trip's UUID in the other case is shared with it`() async throws {
        let id = UUID().uuidString
        try await anna.container.save([
            Trip(id: id.lowercased()), Stop(id: "upper", trip: Reference(id.uppercased())),
            Stop(id: "lower", trip: Reference(id.lowercased())),
        ])
        let graph = try await anna.container.graph(of: [RecordName(type: "Trip", name: id.uppercased())])
        #expect(Set(graph.map(\.name)) == [id.lowercased(), "upper", "lower"])
        _ = try await anna.share(Trip(id: id.lowercased()), with: ben, .readWrite)
        for name in ["upper", "lower"] { #expect(try await shared("Stop", name, anna), "\(name)") }
        #expect(try StoreVerification(of: anna.container.directory).run().problems.map(\.message) == [])
    }

    @Test func `an owner in the other store is refused, also by a context and by an update with a condition`() async throws {
        try await share()
        try await ben.container.save([Trip(id: "own"), Stop(id: "mine", trip: Reference("own"))])
        func isRefused(_ body: () async throws -> Void) async {
            let error = await #expect(throws: StoreError.self) { try await body() }
            #expect(error?.code == .invalid && error?.message.contains("its owner Trip norway is in the shared store") == true)
        }
        let context = ben.container.newContext()
        var stop = try #require(try await context.fetch(Stop.self, named: "mine"))
        stop.trip = Reference("norway")
        try await context.update(stop)
        await isRefused { try await context.save() }
        await isRefused {
            try await ben.container.updateAll(Stop.self, where: \.title == "", set: ["trip": Reference<Trip>("norway")])
        }
        #expect(try await ben.container.fetch(Stop.self, named: "mine")?.trip == Reference("own"))
    }

    @Test func `an imported stop of a shared trip is shared`() async throws {
        try await share()
        let lines = try scratch.writeLines(
            [#"{"id": "alta", "trip": "norway", "day": 4, "title": "Alta", "tags": []}"#], to: "stops.jsonl")
        let options = ImportOptions(type: "Stop", nameField: "id")
        let summary = try await BulkImport(
            source: .file(lines), into: anna.container.directory.url, options: options
        ).run()
        #expect(summary.changes.inserted == 1)
        #expect(try await shared("Stop", "alta", anna))
        for person in [anna, ben] { try await person.sync() }
        #expect(try await names(Stop.self, ben) == ["alta", "senja"])
    }

    @Test func `a stop that gets a trip of a share moves into it with its photos`() async throws {
        try await share()
        try await anna.container.save(Photo(id: "p9", stop: Reference("hut")))
        var hut = try #require(try await anna.container.fetch(Stop.self, named: "hut"))
        hut.trip = Reference("norway")
        try await anna.container.save(hut)
        for person in [anna, ben] { try await person.sync() }
        #expect(try await names(Stop.self, ben) == ["hut", "senja"])
        #expect(try await names(Photo.self, ben) == ["p1", "p9"])
        hut.trip = Reference("privat")
        try await anna.container.save(hut)
        for person in [anna, ben] { try await person.sync() }
        #expect(try await names(Stop.self, ben) == ["senja"])
        #expect(try await names(Photo.self, ben) == ["p1"])
        #expect(try await names(Stop.self, anna) == ["hut", "senja"])
    }

    @Test func `a participant's own tag stays with a stop that leaves the share, and is no damage`() async throws {
        try await share()
        try await ben.container.save(Tag(id: "bens", name: "own"))
        var senja = try #require(try await ben.container.fetch(Stop.self, named: "senja"))
        senja.tags.append(Reference("bens"))
        try await ben.container.save(senja)
        for person in [ben, anna] { try await person.sync() }
        var left = try #require(try await anna.container.fetch(Stop.self, named: "senja"))
        left.trip = Reference("privat")
        try await anna.container.save(left)
        for person in [anna, ben, anna] { try await person.sync() }
        #expect(try await names(Stop.self, ben) == [])
        for person in [anna, ben] {
            #expect(try StoreVerification(of: person.container.directory).run().problems.map(\.message) == [])
        }
        left.trip = Reference("norway")
        try await anna.container.save(left)
        for person in [anna, ben] { try await person.sync() }
        let tags = try await ben.container.fetch(Stop.self, named: "senja")?.tags.map(\.recordName)
        #expect(tags == ["fjord", "bens"])
    }

    @Test func `a reference to a missing record is damage if its record was never in a share`() async throws {
        let hut = Stop(id: "hut2", trip: Reference("privat"), tags: [Reference("nowhere")])
        try await anna.container.save(hut)
        let problems = try StoreVerification(of: anna.container.directory).run().problems.map(\.message)
        #expect(problems == ["Stop hut2 refers to Tag nowhere by 'tags', and there is no such record"])
    }

    @Test func `a participant who may only read deletes nothing`() async throws {
        try await share(.readOnly)
        await #expect(throws: PermissionDenied.self) { try await ben.container.delete(Trip(id: "norway")) }
        #expect(try await names(Stop.self, ben) == ["senja"])
        #expect(try await names(Photo.self, ben) == ["p1"])
    }

    @Test func `a participant who may write deletes a stop with its photos for everybody`() async throws {
        try await share()
        let result = try await ben.container.delete(Stop.self, named: "senja")
        #expect(result.cascaded == [RecordName(type: "Photo", name: "p1")])
        for person in [ben, anna] { try await person.sync() }
        #expect(try await names(Photo.self, anna) == [])
        #expect(try await names(Stop.self, anna) == ["hut"])
    }

    @Test func `a deletion by a query that a rule forbids in one store deletes nothing in the other`() async throws {
        try await share()
        try await ben.container.save([Trip(id: "own"), Booking(id: "b1", trip: Reference("own"))])
        let error = await #expect(throws: DeletionDenied.self) { try await ben.container.deleteAll(Trip.self) }
        #expect(error?.refusals.map(\.record.name) == ["own"])
        #expect(try await names(Trip.self, ben) == ["norway", "own"])
        try await ben.container.delete(Booking.self, named: "b1")
        #expect(Set(try await ben.container.deleteAll(Trip.self)) == ["own", "norway"])
        #expect(try await names(Stop.self, ben) == [])
    }

    @Test func `a chain of owners that is saved from its end follows its shared owner`() async throws {
        try await share()
        try await ben.container.declare([Part.self])
        let count = 2_000
        let chain = (0..<count).map { Part(id: "c\($0)", of: $0 == 0 ? nil : Reference("c\($0 - 1)"), stop: nil) }
        try await anna.container.save(chain.reversed())
        #expect(try await anna.container.count(Part.self) == count)
        // Sharing an owner shares the whole chain.
        try await anna.container.share(Part(id: "c0", of: nil, stop: nil), title: "chain", in: anna.databases)
        #expect(try await shared("Part", "c\(count - 1)", anna))
        try await anna.container.save(
            (count..<count + 5).reversed().map { Part(id: "c\($0)", of: Reference("c\($0 - 1)"), stop: nil) })
        #expect(try await shared("Part", "c\(count + 4)", anna))
        // A participant's chain is stored in the shared store.
        try await anna.container.save(Part(id: "b0", of: nil, stop: nil))
        let (_, link) = try await anna.share(Part(id: "b0", of: nil, stop: nil), with: ben)
        try await anna.sync()
        _ = try await ben.container.acceptInvitation(link, in: ben.databases)
        try await ben.sync()
        try await ben.container.save((1..<300).reversed().map { Part(id: "b\($0)", of: Reference("b\($0 - 1)"), stop: nil) })
        #expect(try await shared("Part", "b299", ben))
        #expect(try await ben.container.count(Part.self) == 300)
    }

    /// A part that belongs to another of its type.
    private struct Part: Tidemark.Record, Equatable {
        var id: String
        var of: Reference<Part>?
        var stop: Reference<Stop>?
        var recordName: String { id }
        static var relationships: [Relationship<Part>] { [.owned(by: \.of)] }
    }

    @Test func `records of a new type that own each other are imported beside a share`() async throws {
        try await share()
        var schema = RecordTypeSchema(
            name: "Part", nameField: "id", fields: [.init(name: "of", type: .reference)])
        schema.relationships = [
            "of": RelationshipSchema(field: "of", target: "Part", isOwning: true, deleteRule: .cascade)
        ]
        let lines = try scratch.writeLines(
            (0..<500).map { $0 == 0 ? #"{"id": "c0"}"# : #"{"id": "c\#($0)", "of": "c\#($0 - 1)"}"# }, to: "parts.jsonl")
        let options = ImportOptions(type: "Part", nameField: "id", schema: [schema])
        _ = try await BulkImport(source: .file(lines), into: anna.container.directory.url, options: options).run()
        #expect(try await anna.container.count(Part.self) == 500)
        #expect(try await shared("Part", "c499", anna) == false)
    }
}
