import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: predicates and sorts give the expected records, or are refused; no result is silently wrong.
/// Method: a few records with known answers, in a separate container for each test.
@Suite(.timeLimit(.minutes(30))) struct QueryTests {
    struct Trip: Tidemark.Record, Identifiable, Equatable {
        var id = UUID()
        var title: String
    }

    struct Stay: Tidemark.Record, Equatable {
        enum Season: String, Codable, Sendable { case summer, winter }

        var id: String
        var recordName: String { id }
        var stars = 3
        var rating: Int?
        var budget: Decimal = 0
        var limit: Decimal?
        var trip: Reference<Trip>?
        var trips: [Reference<Trip>] = []
        var tags: [String] = []
        var token: UUID?
        var season: Season?
        var position: Location?
        var createdAt = Date(timeIntervalSince1970: 0)
        var isLong: Bool { stars > 3 }
    }

    private func names(
        _ journal: PersistentContainer, _ predicate: Tidemark.RecordPredicate<Stay>?, _ sorts: [RecordSort<Stay>] = []
    ) async throws -> [String] {
        try await journal.fetchAll(Stay.self, where: predicate, sortedBy: sorts).map(\.id)
    }

    private func refusal(_ journal: PersistentContainer, _ predicate: Tidemark.RecordPredicate<Stay>) async -> String {
        do {
            return "found \(try await names(journal, predicate))"
        } catch {
            return "\((error as? StoreError)?.code.rawValue ?? "?"): \(error)"
        }
    }

    @Test func `key paths find the values of their fields`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let (north, south) = (Trip(title: "North"), Trip(title: "South"))
        try await journal.save([north, south])
        var a = Stay(id: "a", stars: 5, rating: 4, trip: Reference(north), trips: [Reference(north), Reference(south)])
        a.season = .winter
        a.tags = ["ice"]
        let b = Stay(id: "b", stars: 1, trip: Reference(south), createdAt: Date(timeIntervalSince1970: 9))
        let c = Stay(id: "c", rating: 1)
        try await journal.save([a, b, c])
        #expect(try await names(journal, \.rating >= 4 && \.stars == 5, [.descending(\.createdAt)]) == ["a"])
        #expect(try await names(journal, \.rating < 4 || \.stars <= 1) == ["b", "c"])
        #expect(try await names(journal, \.rating == nil) == ["b"])
        #expect(try await names(journal, \.rating != 4) == ["b", "c"])
        #expect(try await names(journal, !(\.stars > 3)) == ["b", "c"])
        #expect(try await names(journal, \.trip == north) == ["a"])
        #expect(try await names(journal, \.trip == Reference(south)) == ["b"])
        #expect(try await names(journal, \.trip != north) == ["b", "c"])
        #expect(try await names(journal, \.season == .winter) == ["a"])
        #expect(try await names(journal, \.id == "b") == ["b"])
        #expect(try await names(journal, .field(\.trips).contains(south)) == ["a"])
        #expect(try await names(journal, .field(\.tags).contains("ice")) == ["a"])
        #expect(try await names(journal, .field(\.stars).isIn([1, 3])) == ["b", "c"])
        #expect(try await names(journal, .field(\.id).begins(with: "a")) == ["a"])
        #expect(try await names(journal, nil, [.descending(\.createdAt), .descending(\.stars)]) == ["b", "a", "c"])
    }

    @Test func `a key path without a stored property or a coding key is refused, and the error has the remedy`() async throws {
        struct Renamed: Tidemark.Record {
            enum CodingKeys: String, CodingKey {
                case id
                case title = "heading"
            }
            var id: String
            var title: String
            var recordName: String { id }
        }
        struct Mapped: Tidemark.Record {
            static let recordType = "Renamed"
            enum CodingKeys: String, CodingKey {
                case id
                case title = "heading"
            }
            var id: String
            var title: String
            var recordName: String { id }
            static func fieldName(of property: PartialKeyPath<Mapped>) -> String? { property == \Mapped.title ? "heading" : nil }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Stay(id: "a"))
        #expect(await refusal(journal, \.isLong == true).hasPrefix("invalid: a key path of Stay does not name a stored property"))
        #expect(
            await refusal(journal, \.position?.latitude == 1).hasPrefix(
                "invalid: a key path of Stay does not name a stored property"))
        await #expect(throws: StoreError(.invalid, "")) { try await names(journal, nil, [.ascending(\.isLong)]) }
        try await journal.save(Renamed(id: "r", title: "x"))
        do {
            _ = try await journal.fetchAll(Renamed.self, where: \.title == "x")
            Issue.record("not refused")
        } catch let error as StoreError {
            #expect(error.code == .invalid && error.message.contains("static func fieldName(of: PartialKeyPath<Renamed>)"))
        }
        #expect(try await journal.fetchAll(Mapped.self, where: \.title == "x" && \.id == "r").map(\.title) == ["x"])
    }

    @Test func `a property that no record has a value for yet is found empty, and a misspelt field is refused`() async throws {
        struct Before: Tidemark.Record {
            static let recordType = "Stay"
            var id: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(Before(id: "a"))
        #expect(try await journal.count(Stay.self, where: \.rating >= 1) == 0)
        #expect(try await journal.count(Stay.self, where: \.rating == nil) == 1)
        #expect(try await journal.count(Stay.self, where: .field("rating") == nil) == 1)
        await #expect(throws: StoreError(.schema, "")) { try await journal.count(Stay.self, where: .field("ratting") == nil) }
    }

    @Test func `decimals are compared and sorted as numbers, exactly`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let texts = ["1234.56", "999", "-5", "100000000000000000000.01", "100000000000000000000.02", "0.5"]
        let all = texts.enumerated().map { Stay(id: "\($0)", budget: Decimal(string: $1)!) }
        try await journal.save(all)
        #expect(try await names(journal, \.budget > 999) == ["0", "3", "4"])
        #expect(try await names(journal, .field("budget") > Decimal(999)) == ["0", "3", "4"])
        #expect(try await names(journal, \.budget == Decimal(string: "999.00")!) == ["1"])
        #expect(try await names(journal, \.budget < Decimal(string: "100000000000000000000.02")!) == ["0", "1", "2", "3", "5"])
        #expect(try await names(journal, .field(\.budget).isIn([999, Decimal(string: "0.50")!])) == ["1", "5"])
        #expect(try await names(journal, \.limit != 3).count == 6)
        #expect(try await names(journal, nil, [.ascending(\.budget)]) == ["2", "5", "1", "0", "3", "4"])
        #expect(try await names(journal, nil, [.descending("budget", order: .decimal)]) == ["4", "3", "0", "1", "5", "2"])
        // The writer and a pinned state give the same answers.
        #expect(try await journal.snapshot().count(Stay.self, where: \.budget > 999) == 3)
        #expect(try await journal.deleteAll(Stay.self, where: \.budget > 999) == ["0", "3", "4"])
    }

    @Test func `UUIDs are found in either case, in texts, references and lists`() async throws {
        struct Text: Tidemark.Record {
            static let recordType = "Stay"
            var id: String
            var token: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let trip = Trip(title: "North")
        let token = UUID()
        try await journal.save(Stay(id: "a", trip: Reference(trip), trips: [Reference(trip)], token: token))
        try await journal.save([Text(id: "b", token: token.uuidString.lowercased()), Text(id: "c", token: "other")])
        #expect(try await journal.fetchAll(Text.self, where: .field("token") == token).map(\.id) == ["a", "b"])
        #expect(try await journal.fetchAll(Text.self, where: .field("token") != token).map(\.id) == ["c"])
        #expect(try await journal.fetchAll(Text.self, where: .field("token").isIn([token])).map(\.id) == ["a", "b"])
        #expect(try await journal.count(Stay.self, where: \.token == token) == 2)
        #expect(try await journal.count(Stay.self, where: .field("trip") == trip.id) == 1)
        #expect(try await journal.count(Stay.self, where: .field("trips").contains(trip.id)) == 1)
        #expect(try await journal.count(Stay.self, where: .field("trips").contains(UUID())) == 0)
    }

    @Test func `a comparison that can't match is refused, and the error names both types`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var full = Stay(id: "a", rating: 1, trip: Reference("x"), trips: [Reference("x")], tags: ["t"])
        full.position = Location(latitude: 1, longitude: 2)
        try await journal.save([full, Stay(id: "b", tags: [])])
        #expect(
            await refusal(journal, .field("rating") == "4")
                == "invalid: 'rating' is of type int64 and can't be compared with a value of type String")
        #expect(
            await refusal(journal, .field("rating") == UUID()).hasSuffix(
                "'rating' is of type int64 and can't be compared with a value of type UUID"))
        #expect(
            await refusal(journal, .field("rating") > Decimal(3)).hasSuffix(
                "of type int64 and can't be compared with a value of type Decimal"))
        #expect(
            await refusal(journal, .field("createdAt") > 5).hasSuffix(
                "of type timestamp and can't be compared with a value of type Int"))
        #expect(
            await refusal(journal, .field("position") == "north").hasSuffix(
                "of type location and can't be compared with a value of type String"))
        #expect(
            await refusal(journal, .field("trips").contains(7)).hasSuffix(
                "of type list<reference> and can't be compared with a value of type Int"))
        #expect(await refusal(journal, .field("rating").contains("7")).hasPrefix("invalid: 'rating' is of type int64"))
        #expect(await refusal(journal, .field("tags") > ["a"]).hasSuffix("has no order; compare it with == or !="))
        #expect(await refusal(journal, .field("id") == 1.5).hasPrefix("invalid: 'id' is the name of Stay records"))
        #expect(
            await refusal(journal, .field("image") == Asset(data: Data([1])))
                == "invalid: 'image' can't be compared: the asset is not saved yet")
        #expect(try await names(journal, .field("tags") == ["t"]) == ["a"])
        #expect(try await names(journal, .field("tags") == [String]()) == ["b"])
        await #expect(throws: StoreError(.invalid, "")) { try await journal.fetchAll(Stay.self, limit: -1) }
        #expect(try await journal.fetchAll(Stay.self, limit: 0) == [])
    }

    @Test func `an update that a type could not read is refused, and a new property becomes a field`() async throws {
        struct Before: Tidemark.Record {
            static let recordType = "Stay"
            var id: String
            var stars = 1
            var recordName: String { id }
        }
        struct After: Tidemark.Record {
            static let recordType = "Stay"
            static var prototype: After? { After(id: "", comfort: 0) }
            var id: String
            var stars = 1
            var comfort: Int
            var isQuiet: Bool?
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Before(id: "a"), Before(id: "b", stars: 2)])
        do {
            try await journal.updateAll(Before.self, set: ["stars": nil])
            Issue.record("not refused")
        } catch let error as StoreError {
            #expect(error.code == .invalid && error.message.contains("the field 'stars' has no value"))
        }
        #expect(try await journal.updateAll(After.self, where: \.stars == 2, set: ["comfort": 3, "isQuiet": true]) == ["b"])
        #expect(try await journal.fetchAll(After.self, sortedBy: [.ascending(\.id)]).map(\.comfort) == [0, 3])
        #expect(try await journal.fetch(After.self, named: "b")?.isQuiet == true)
        await #expect(throws: StoreError(.schema, "")) { try await journal.updateAll(After.self, set: ["comfrot": 1]) }
        #expect(try await journal.updateAll(After.self, set: ["isQuiet": nil]) == ["a", "b"])
    }
}
