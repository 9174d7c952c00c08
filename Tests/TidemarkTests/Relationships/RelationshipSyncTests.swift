import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore

/// Goal: devices that did not know each other's changes end with the same records, and no owner or reference is missing. Method:
/// devices of one account over one real cloud.
@Suite(.timeLimit(.minutes(30))) struct RelationshipSyncTests {
    typealias Trip = Travel.Trip
    typealias Stop = Travel.Stop
    typealias Photo = Travel.Photo
    typealias Tag = Travel.Tag
    typealias Booking = Travel.Booking

    private let scratch: Scratch
    private let place: TwoUserFixture
    private let one: Person
    private let two: Person

    init() async throws {
        scratch = try Scratch()
        place = try TwoUserFixture(scratch)
        (one, two) = (try await place.person("anna", device: "1"), try await place.person("anna", device: "2"))
        try await one.container.save([
            Trip(id: "norway"), Tag(id: "fjord", name: "fjord"),
            Stop(id: "senja", trip: Reference("norway"), tags: [Reference("fjord")]), Photo(id: "p1", stop: Reference("senja")),
        ])
        // Every device has all types before, so that it knows their rules.
        try await two.container.save([
            Stop(id: "s0", trip: Reference("t0")), Trip(id: "t0"), Photo(id: "p0", stop: Reference("s0")),
            Tag(id: "g0", name: "g0"), Booking(id: "b0", trip: Reference("t0")),
        ])
        try await one.container.save(Booking(id: "b1", trip: Reference("t1")))
        try await one.container.save(Trip(id: "t1"))
        try await meet()
    }

    /// A record that is unique for each tag.
    struct Label: Tidemark.Record, Equatable {
        var id: String
        var tag: Reference<Tag>?
        var text = "wet"
        var recordName: String { id }

        static var uniqueKeys: [UniqueKey] { [UniqueKey("tag", "text")] }
        static var relationships: [Relationship<Label>] { [.weak(\.tag)] }
    }

    private func meet() async throws {
        for _ in 0..<3 { for device in [one, two] { try await device.sync() } }
    }

    private func names<R: Tidemark.Record>(_ type: R.Type) async throws -> [[String]] {
        var names: [[String]] = []
        for device in [one, two] { names.append(try await device.container.fetchAll(type).map(\.recordName).sorted()) }
        return names
    }

    /// Checks both devices for damage and differences.
    private func expectWhole() throws {
        for device in [one, two] {
            let report = try StoreVerification(of: device.container.directory).run()
            #expect(report.problems.map(\.message) == [])
        }
    }

    @Test func `a stop that was made while its trip was deleted elsewhere is deleted, too, and the log has it`() async throws {
        try await one.container.delete(Trip(id: "norway"))
        try await two.container.save(Stop(id: "late", trip: Reference("norway")))
        try await two.container.save(Photo(id: "p2", stop: Reference("late")))
        try await meet()
        #expect(try await names(Stop.self) == [["s0"], ["s0"]])
        #expect(try await names(Photo.self) == [["p0"], ["p0"]])
        try expectWhole()
        let logged = try [one, two].flatMap { try $0.container.history().conflicts() }.filter { $0.policy == "cascade" }
        #expect(Set(logged.map(\.record)) == ["late", "p2"])
        #expect(logged.first { $0.record == "late" }?.field == "trip")
    }

    @Test func `a stop that arrives after its trip was deleted here is deleted, too`() async throws {
        try await two.container.save(Stop(id: "late", trip: Reference("norway")))
        try await two.sync()
        try await one.container.delete(Trip(id: "norway"))
        try await meet()
        #expect(try await names(Stop.self) == [["s0"], ["s0"]])
        try expectWhole()
    }

    @Test func `a list loses a tag that was deleted elsewhere, even if another device has edited the list`() async throws {
        try await one.container.delete(Tag(id: "fjord", name: "fjord"))
        var senja = try #require(try await two.container.fetch(Stop.self, named: "senja"))
        senja.tags.append(Reference("g0"))
        try await two.container.save(senja)
        try await two.container.save(Stop(id: "late", trip: Reference("norway"), tags: [Reference("fjord"), Reference("g0")]))
        try await meet()
        for device in [one, two] {
            #expect(try await device.container.fetch(Stop.self, named: "senja")?.tags == [Reference("g0")])
            #expect(try await device.container.fetch(Stop.self, named: "late")?.tags == [Reference("g0")])
        }
        try expectWhole()
    }

    @Test func `a trip that a booking needs is restored`() async throws {
        try await one.container.delete(Trip(id: "norway"))
        try await two.container.save(Booking(id: "b2", trip: Reference("norway")))
        try await meet()
        #expect(try await names(Trip.self) == [["norway", "t0", "t1"], ["norway", "t0", "t1"]])
        #expect(try await names(Booking.self) == [["b0", "b1", "b2"], ["b0", "b1", "b2"]])
        try expectWhole()
    }

    @Test func `references follow a tag that is merged with another device's, also those of a late device`() async throws {
        try await one.container.save([
            Tag(id: "a", name: "rain"), Stop(id: "s1", trip: Reference("norway"), tags: [Reference("a")]),
            Label(id: "l1", tag: Reference("a")),
        ])
        try await two.container.save([
            Tag(id: "b", name: "rain"), Stop(id: "s2", trip: Reference("norway"), tags: [Reference("b")]),
            Label(id: "l2", tag: Reference("b")),
        ])
        try await meet()
        for device in [one, two] {
            #expect(try await device.container.fetch(Stop.self, named: "s1")?.tags == [Reference("a")])
            #expect(try await device.container.fetch(Stop.self, named: "s2")?.tags == [Reference("a")])
        }
        #expect(try await names(Tag.self) == [["a", "fjord", "g0"], ["a", "fjord", "g0"]])
        try expectWhole()
        let logged = try [one, two].flatMap { try $0.container.history().conflicts() }.filter { $0.replacement != nil }
        #expect(!logged.isEmpty)
        // With their tags the labels are merged, too.
        #expect(try await names(Label.self) == [["l1"], ["l1"]])
        #expect(
            Set(logged.map { "\($0.type) \($0.record) \($0.replacement ?? "")" }) == ["Tag b a", "Label l2 l1"])
    }

    @Test func `a stop that was made while its trip was shared elsewhere moves into the share`() async throws {
        let share = try await one.container.share(Trip(id: "norway"), title: "Norway", in: one.databases)
        try await two.container.save(Stop(id: "late", trip: Reference("norway")))
        try await two.container.save(Photo(id: "p2", stop: Reference("late")))
        try await meet()
        for device in [one, two] {
            for record in [RecordName(type: "Stop", name: "late"), RecordName(type: "Photo", name: "p2")] {
                let shares = try await device.container.fetchShares(matching: [record])
                #expect(shares[record]?.zone == share.zone)
            }
        }
        #expect(try await names(Stop.self) == [["late", "s0", "senja"], ["late", "s0", "senja"]])
        try expectWhole()
    }

    /// A chapter that belongs to another.
    private struct Chapter: Tidemark.Record {
        var id: String
        var of: Reference<Chapter>?
        var recordName: String { id }
        static var relationships: [Relationship<Chapter>] { [.owned(by: \.of)] }
    }

    @Test func `if all records are of one type, a new one moves into the share of the record that owns it`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let (one, two) = (try await place.person("anna", device: "1"), try await place.person("anna", device: "2"))
        try await one.container.save([Chapter(id: "north"), Chapter(id: "n1", of: Reference("north"))])
        try await two.container.save([Chapter(id: "south"), Chapter(id: "s1", of: Reference("south"))])
        for _ in 0..<2 { for device in [one, two] { try await device.sync() } }
        try await one.container.share(Chapter(id: "north"), title: "North", in: one.databases)
        try await one.sync()
        // The second device learns of the share when it has the new chapter already.
        try await two.container.save(Chapter(id: "n2", of: Reference("north")))
        try await two.sync()
        let records = ["north", "n1", "n2", "south", "s1"].map { RecordName(type: "Chapter", name: $0) }
        let shares = try await two.container.fetchShares(matching: records)
        #expect(Set(shares.keys.map(\.name)) == ["north", "n1", "n2"])
    }

    @Test
    func `a stop that is saved here for a trip that was deleted before is deleted, too, after a synchronisation`() async throws {
        try await two.container.delete(Trip(id: "norway"))
        try await meet()
        // A view still showed the trip.
        try await one.container.save(Stop(id: "late", trip: Reference("norway")))
        try await one.sync()
        #expect(try await one.container.fetchAll(Stop.self).map(\.id) == ["s0"])
        try await meet()
        #expect(try await names(Stop.self) == [["s0"], ["s0"]])
        try expectWhole()
    }

    @Test func `records that a synchronisation deleted are restored by an undo, even if others moved into a share`() async throws
    {
        try await one.container.share(Trip(id: "norway"), title: "Norway", in: one.databases)
        try await one.container.delete(Stop(id: "s0", trip: Reference("t0")))
        try await one.sync()
        try await two.container.save([
            Stop(id: "late", trip: Reference("norway")), Photo(id: "p2", stop: Reference("s0")),
        ])
        let token = try two.container.history().historyToken()
        try await two.sync()
        #expect(try await two.container.fetchAll(Photo.self).map(\.id).sorted() == ["p1"])
        let late = RecordName(type: "Stop", name: "late")
        #expect(try await two.container.fetchShares(matching: [late])[late] != nil)
        let changes = try two.container.history().changes(since: token).transactions
        let cascade = try #require(changes.first { $0.changes.contains { $0.kind == .delete && $0.record.name == "p2" } })
        #expect(cascade.transaction.author == "relationships")
        _ = try await two.container.undo(transaction: cascade.transaction.id, mergePolicy: .mergeByPropertyObjectTrump)
        #expect(try await two.container.fetchAll(Photo.self).map(\.id).sorted() == ["p1", "p2"])
    }

    private struct Note: Tidemark.Record {
        var id: String
        var tag: Reference<Tag>?
        var recordName: String { id }
    }

    @Test func `references that follow a merge are sent, also those without a rule, so that a new device has them`() async throws
    {
        try await one.container.save(Tag(id: "a", name: "rain"))
        try await two.container.save([Tag(id: "b", name: "rain"), Note(id: "1", tag: Reference("b"))])
        try await two.sync()
        try await one.sync()
        try await one.sync()
        let new = try await place.person("anna", device: "3")
        try await new.sync()
        #expect(try await new.container.fetchAll(Tag.self).map(\.id).sorted() == ["a", "fjord", "g0"])
        #expect(try await new.container.fetch(Note.self, named: "1")?.tag == Reference("a"))
    }

    private struct PlainLeg: Tidemark.Record {
        static let recordType = "Leg"
        var id: String
        var trip: Reference<Trip>?
        var recordName: String { id }
    }

    private struct Leg: Tidemark.Record {
        var id: String
        var trip: Reference<Trip>?
        var recordName: String { id }
        static var relationships: [Relationship<Leg>] { [.owned(by: \.trip)] }
    }

    @Test func `records whose owners were deleted before the first rules were declared stay as they are`() async throws {
        let scratch = try Scratch()
        let place = try TwoUserFixture(scratch)
        let devices = [try await place.person("anna", device: "1"), try await place.person("anna", device: "2")]
        // The records that are here when the account signs in.
        try await devices[0].container.save([PlainLeg(id: "l1", trip: Reference("t9")), PlainLeg(id: "l2")])
        try await devices[0].container.save(Trip(id: "t9"))
        for _ in 0..<2 { for device in devices { try await device.sync() } }
        try await devices[1].container.delete(Trip.self, named: "t9")
        for _ in 0..<2 { for device in devices { try await device.sync() } }
        for device in devices { try await device.container.declare([Leg.self]) }
        for _ in 0..<2 { for device in devices { try await device.sync() } }
        for device in devices {
            #expect(try await device.container.fetchAll(Leg.self).map(\.id).sorted() == ["l1", "l2"])
        }
    }
}
