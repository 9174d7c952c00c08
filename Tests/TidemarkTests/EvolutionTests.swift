import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a newer version of a type reads, finds and saves the records of an older version, and the other way round. Method: two
/// Swift types of one record type represent the two versions of a program.
@Suite(.timeLimit(.minutes(30))) struct EvolutionTests {
    enum Old {
        struct Place: Tidemark.Record, Equatable {
            static let recordType = "Place"
            var id: String
            var name: String
            var height: Int?
            var recordName: String { id }
        }
    }

    enum New {
        struct Place: Tidemark.Record, Equatable {
            enum Kind: String, Codable, Sendable { case town, island }

            static let recordType = "Place"
            static var prototype: Place? { Place(id: "", title: "") }
            static let formerFieldNames = ["title": ["name"]]
            var id: String
            var title: String
            var stars = 3
            var kind = Kind.town
            var isQuiet = true
            var altitude: Double?
            var remark: String?
            var recordName: String { id }
        }
    }

    @Test func `a new property has the prototype's value in old records, for reading, predicates and sorts`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Old.Place(id: "a", name: "Senja"), Old.Place(id: "b", name: "Bodø")])
        #expect(try await journal.count(New.Place.self, where: \.stars == 3 && \.isQuiet == true) == 2)
        try await journal.save(New.Place(id: "c", title: "Narvik", stars: 1, kind: .island))
        let all = try await journal.fetchAll(New.Place.self, sortedBy: [.ascending(\.stars), .ascending(\.title)])
        #expect(
            all == [
                New.Place(id: "c", title: "Narvik", stars: 1, kind: .island), New.Place(id: "b", title: "Bodø"),
                New.Place(id: "a", title: "Senja"),
            ])
        #expect(try await journal.fetchAll(New.Place.self, where: \.stars >= 3).map(\.id) == ["a", "b"])
        #expect(try await journal.fetchAll(New.Place.self, where: \.kind == .town).map(\.id) == ["a", "b"])
        #expect(try await journal.fetchAll(New.Place.self, where: \.remark == nil).count == 3)
        // A context and a save use the prototype, too.
        let context = journal.newContext()
        var senja = try #require(try await context.fetch(New.Place.self, named: "a"))
        senja.title = "Senja in winter"
        try await context.update(senja)
        try await context.save()
        #expect(try await journal.fetch(New.Place.self, named: "a") == senja)
    }

    @Test func `the guide's example reads, converts and finds the records of a first version`() async throws {
        enum Version1 {
            struct Trip: Tidemark.Record {
                static let recordType = "Trip"
                var id = UUID()
                var name: String
                var stars: Int?
                var weather = "rain"
                var transport = "train"
                var recordName: String { id.uuidString.lowercased() }
            }
        }
        let scratch = try Scratch()
        let anna = try await TwoUserFixture(scratch).person("anna")
        let journal = anna.container
        try await journal.save([Version1.Trip(name: "Norway", stars: 4), Version1.Trip(name: "Alps", transport: "airship")])
        for _ in 0..<2 {
            try await Evolution.open(journal, anna.databases)
            await journal.stopSyncing()
        }
        var told: [String] = []
        let trips = try await Evolution.list(journal) { told.append($0) }
        #expect(Set(trips.map(\.title)) == ["Norway", "Alps"] && told == [])
        #expect(Set(trips.map(\.nights)) == [1] && Set(trips.map(\.rating)) == [4, nil])
        #expect(Set(trips.map(\.transport.rawValue)) == ["train", "airship"])
        #expect(try await journal.count(Evolution.Trip.self, where: \.rating > 3.5) == 1)
        try await journal.save(Version1.Trip(name: "x", weather: "sun"))
        try await journal.updateAll(Evolution.Trip.self, where: \.title == "x", set: ["nights": 2])
        #expect(try await journal.fetchAll(Evolution.Trip.self, where: \.nights == 2).map(\.title) == ["x"])
    }

    @Test func `without a prototype the error names the remedy`() async throws {
        struct Strict: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var stars: Int
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Old.Place(id: "a", name: "Senja"))
        do {
            _ = try await journal.fetch(Strict.self, named: "a")
            Issue.record("was read")
        } catch DecodingError.valueNotFound(_, let context) {
            #expect(context.debugDescription.contains("`static var prototype: Strict? { … }`"))
            #expect(context.debugDescription.contains("Place a can't be read as Strict"))
        }
    }

    @Test func `a renamed property is read, found and sorted under its former name, and stays cleared`() async throws {
        struct Loose: Tidemark.Record, Equatable {
            static let recordType = "Place"
            static let formerFieldNames = ["title": ["label", "name"]]
            var id: String
            var title: String?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Old.Place(id: "a", name: "Senja"), Old.Place(id: "b", name: "Bodø")])
        #expect(try await journal.fetchAll(Loose.self, where: \.title == "Senja") == [Loose(id: "a", title: "Senja")])
        try await journal.save(Loose(id: "a", title: "Andøya"))
        #expect(try await journal.fetchAll(Loose.self, sortedBy: [.ascending(\.title)]).map(\.title) == ["Andøya", "Bodø"])
        #expect(try await journal.fetchAll(Loose.self, where: \.title == "Senja") == [])
        #expect(try await journal.fetchAll(Loose.self, where: .field("title").begins(with: "B")).map(\.id) == ["b"])
        try await journal.save(Loose(id: "a", title: nil))
        #expect(try await journal.fetch(Loose.self, named: "a") == Loose(id: "a", title: nil))
        #expect(try await journal.updateAll(Loose.self, where: \.id == "b", set: ["title": nil]) == ["b"])
        #expect(try await journal.count(Loose.self, where: \.title == nil) == 2)
    }

    @Test func `a double is read from an int64 field and saved into it, if it is whole`() async throws {
        struct Measured: Tidemark.Record, Equatable {
            static let recordType = "Place"
            var id: String
            var height: Double?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Old.Place(id: "a", name: "Senja", height: 12))
        var senja = try #require(try await journal.fetch(Measured.self, named: "a"))
        #expect(senja.height == 12)
        #expect(try await journal.save(senja).counts == ChangeCounts(unchanged: 1))
        senja.height = 13
        #expect(try await journal.save(senja).counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetch(Old.Place.self, named: "a")?.height == 13)
        #expect(try await journal.fetchAll(Measured.self, where: \.height > 12.5) == [senja])
        senja.height = 13.5
        do {
            try await journal.save(senja)
            Issue.record("was saved")
        } catch let error as StoreError {
            #expect(error.code == .invalid && error.message.contains("is int64 in the store, and 13.5 is not a whole number"))
        }
        #expect(try await journal.updateAll(Measured.self, set: ["height": 14.0]) == ["a"])
        // A save without a change is not an edit, so the other edit counts.
        let context = journal.newContext()
        let mine = try #require(try await context.fetch(Measured.self, named: "a"))
        try await journal.save(Old.Place(id: "a", name: "Senja", height: 15))
        try await context.update(mine)
        try await context.refreshAll()
        #expect(try await context.fetch(Measured.self, named: "a")?.height == 15)
    }

    @Test func `only a record that can't be read is left out and reported`() async throws {
        struct Newer: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var title: String
            var kind: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save((0..<6).map { New.Place(id: "p\($0)", title: "t\($0)") })
        try await journal.save([Newer(id: "p1", title: "t1", kind: "volcano"), Newer(id: "p3", title: "t3", kind: "lake")])
        #expect(try await journal.fetchAll(New.Place.self).map(\.id) == ["p0", "p2", "p4", "p5"])
        // The limit counts the records that can be read.
        #expect(
            try await journal.fetchAll(New.Place.self, sortedBy: [.ascending(\.title)], limit: 3).map(\.id) == ["p0", "p2", "p4"])
        let result = try await journal.fetchResult(New.Place.self, sortedBy: [.descending(\.title)])
        #expect(result.records.map(\.id) == ["p5", "p4", "p2", "p0"])
        #expect(result.unreadable.map(\.record) == ["p3", "p1"].map { RecordName(type: "Place", name: $0) })
        #expect(result.unreadable.allSatisfy { $0.error is DecodingError })
        // What a person is shown names the record and the property.
        let texts = result.unreadable.map(\.localizedDescription)
        #expect(texts.allSatisfy { $0.hasPrefix("Place p") && $0.contains("can't be read as") }, "\(texts)")
        await #expect(throws: DecodingError.self) { try await journal.fetch(New.Place.self, named: "p1") }
        #expect(try await journal.newContext().fetchAll(New.Place.self).count == 4)
    }

    @Test func `records are sorted by a property that no record has a value for yet`() async throws {
        struct Counted: Tidemark.Record {
            static let recordType = "Place"
            static var prototype: Counted? { Counted(id: "", stars: 300, depth: -1, isOpen: false) }
            var id: String
            var stars: Int
            var depth: Int
            var isOpen: Bool
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Old.Place(id: "b", name: "x"), Old.Place(id: "a", name: "z"), Old.Place(id: "c", name: "y")])
        #expect(try await journal.fetchAll(New.Place.self, sortedBy: [.ascending(\.stars)]).map(\.id) == ["b", "a", "c"])
        #expect(
            try await journal.fetchAll(New.Place.self, sortedBy: [.descending(\.stars), .ascending(\.title)]).map(\.id)
                == ["b", "c", "a"])
        let sorts: [RecordSort<Counted>] = [.ascending(\.stars), .descending(\.depth), .ascending(\.isOpen)]
        for sort in sorts { #expect(try await journal.fetchAll(Counted.self, sortedBy: [sort]).map(\.id) == ["b", "a", "c"]) }
    }

    @Test func `a value that stands for a missing one is not an edit of the context`() async throws {
        struct Starred: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var stars: Int?
            var name: String?
            var recordName: String { id }
        }
        for refreshes in [false, true] {
            let scratch = try Scratch()
            let journal = try scratch.journal()
            try await journal.save(Old.Place(id: "a", name: "Senja"))
            let context = journal.newContext()
            var mine = try #require(try await context.fetch(New.Place.self, named: "a"))
            #expect(mine.stars == 3 && mine.title == "Senja")
            try await journal.save(Starred(id: "a", stars: 5, name: "Senja 2"))
            mine.remark = "seen"
            try await context.update(mine)
            if refreshes { #expect(try await context.refreshAll() == [RecordName(type: "Place", name: "a")]) }
            let result = try await context.save()
            #expect(result.conflicts.isEmpty)
            let stored = try #require(try await journal.fetch(Starred.self, named: "a"))
            #expect(stored.stars == 5 && stored.name == "Senja 2")
            let place = try #require(try await journal.fetch(New.Place.self, named: "a"))
            #expect(place == New.Place(id: "a", title: "Senja 2", stars: 5, remark: "seen"))
        }
        // Without another edit, properties that were not edited are not written.
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Old.Place(id: "a", name: "Senja"))
        let context = journal.newContext()
        var mine = try #require(try await context.fetch(New.Place.self, named: "a"))
        mine.remark = "seen"
        try await context.update(mine)
        try await context.save()
        #expect(try await journal.fetch(Starred.self, named: "a")?.stars == nil)
    }

    @Test func `a renamed property that a context has cleared stays cleared when the record is refreshed`() async throws {
        struct Loose: Tidemark.Record, Equatable {
            static let recordType = "Place"
            static let formerFieldNames = ["title": ["name"]]
            var id: String
            var title: String?
            var height: Int?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Old.Place(id: "a", name: "Senja"))
        let context = journal.newContext()
        var mine = try #require(try await context.fetch(Loose.self, named: "a"))
        mine.title = nil
        try await context.update(mine)
        try await journal.save(Old.Place(id: "a", name: "Senja", height: 9))
        try await context.refreshAll()
        #expect(try await context.fetch(Loose.self, named: "a") == Loose(id: "a", title: nil, height: 9))
        try await context.save()
        #expect(try await journal.fetch(Loose.self, named: "a") == Loose(id: "a", title: nil, height: 9))
    }

    @Test func `a former name that is a property again keeps its own value`() async throws {
        struct Twice: Tidemark.Record, Equatable {
            static let formerFieldNames = ["title": ["name"]]
            var id: String
            var title: String?
            var name: String?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let record = Twice(id: "a", title: nil, name: "x")
        try await journal.save(record)
        #expect(try await journal.fetchAll(Twice.self) == [record])
        #expect(try await journal.count(Twice.self, where: \.title == "x") == 0)
        try await journal.updateAll(Twice.self, set: ["title": nil])
        #expect(try await journal.fetchAll(Twice.self) == [record])
    }

    @Test func `updateAll stores a value in the form that the property has`() async throws {
        struct Trip: Tidemark.Record {
            var id: String
            var recordName: String { id }
        }
        struct Visited: Tidemark.Record, Equatable {
            static let recordType = "Place"
            var id: String
            var altitude: Double?
            var trip: Reference<Trip>?
            var isDone: Bool?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Old.Place(id: "a", name: "Senja"))
        try await journal.updateAll(Visited.self, set: ["altitude": 12, "trip": "north", "isDone": true])
        var visited = Visited(id: "a", altitude: 12, trip: Reference("north"), isDone: true)
        #expect(try await journal.fetchAll(Visited.self) == [visited])
        visited.altitude = 12.5
        try await journal.save(visited)
        #expect(try await journal.fetchAll(Visited.self) == [visited])
        try await journal.updateAll(Visited.self, set: ["altitude": 13])
        #expect(try await journal.fetchAll(Visited.self).map(\.altitude) == [13])
        await #expect(throws: StoreError(.invalid, "")) { try await journal.updateAll(Visited.self, set: ["trip": 7]) }
    }

    @Test func `a whole number that a double can't hold stays as it is when other properties are saved`() async throws {
        struct Measured: Tidemark.Record, Equatable {
            static let recordType = "Place"
            var id: String
            var height: Double?
            var remark: String?
            var recordName: String { id }
        }
        let large = (1 << 53) + 1
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([
            Old.Place(id: "a", name: "Senja", height: large), Old.Place(id: "b", name: "Bodø", height: large),
        ])
        var senja = try #require(try await journal.fetch(Measured.self, named: "a"))
        senja.remark = "high"
        try await journal.save(senja)
        #expect(try await journal.fetch(Old.Place.self, named: "a")?.height == large)
        let context = journal.newContext()
        var bodo = try #require(try await context.fetch(Measured.self, named: "b"))
        bodo.remark = "low"
        try await context.update(bodo)
        try await journal.save(Old.Place(id: "b", name: "Bodø 2", height: large))
        try await context.refreshAll()
        try await context.save()
        #expect(try await journal.fetch(Old.Place.self, named: "b") == Old.Place(id: "b", name: "Bodø 2", height: large))
    }

    @Test func `lists of whole numbers are read as doubles and saved, if they are whole`() async throws {
        struct Before: Tidemark.Record {
            static let recordType = "Marks"
            var id: String
            var marks: [Int]
            var recordName: String { id }
        }
        struct After: Tidemark.Record, Equatable {
            static let recordType = "Marks"
            var id: String
            var marks: [Double]
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Before(id: "a", marks: [1, 2]))
        var record = try #require(try await journal.fetch(After.self, named: "a"))
        #expect(record.marks == [1, 2])
        #expect(try await journal.save(record).counts == ChangeCounts(unchanged: 1))
        record.marks = [2, 3, 4]
        try await journal.save(record)
        #expect(try await journal.fetchAll(After.self) == [record])
        record.marks = [0.5]
        await #expect(throws: StoreError(.invalid, "")) { try await journal.save(record) }
    }

    @Test func `a property with a former name can't be part of a unique key`() async throws {
        struct Keyed: Tidemark.Record {
            static let uniqueKeys = [UniqueKey("title")]
            static let formerFieldNames = ["title": ["name"]]
            var id: String
            var title: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        await #expect(throws: StoreError(.schema, "")) { try await journal.save(Keyed(id: "a", title: "x")) }
    }

    @Test func `two Swift types of the same name share a record type only if one of them declares it`() async throws {
        enum Trips {
            struct Photo: Tidemark.Record {
                var id: String
                var recordName: String { id }
            }
        }
        enum Albums {
            struct Photo: Tidemark.Record {
                var id: String
                var recordName: String { id }
            }
        }
        struct Portrait: Tidemark.Record {
            static let recordType = "Photo"
            var id: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Trips.Photo(id: "a"))
        do {
            try await journal.save(Albums.Photo(id: "b"))
            Issue.record("was saved")
        } catch let error as StoreError {
            #expect(error.code == .schema && error.message.contains("Trips.Photo") && error.message.contains("Albums.Photo"))
            #expect(error.message.contains("static let recordType"))
        }
        await #expect(throws: StoreError(.schema, "")) { try await journal.fetchAll(Albums.Photo.self) }
        await #expect(throws: StoreError(.schema, "")) { try await journal.count(Albums.Photo.self) }
        await #expect(throws: StoreError(.schema, "")) { try await journal.deleteAll(Albums.Photo.self) }
        #expect(try await journal.fetchAll(Portrait.self).map(\.id) == ["a"])
    }
}
