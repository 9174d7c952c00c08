import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a property that a field can't hold, and a record that is not a set of fields, are refused with their names; no value is
/// read as another type. Method: records of one type are saved and read as another.
@Suite(.timeLimit(.minutes(30))) struct CodingTests {
    /// The error from reading the saved record as another type; "read" if there is none.
    private func reading<R: Tidemark.Record>(_ type: R.Type) async throws -> String {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(ContainerTests.full())
        do {
            _ = try await journal.fetch(type, named: "senja")
            return "read"
        } catch DecodingError.dataCorrupted(let context) {
            return "\(context.codingPath.map(\.stringValue).joined(separator: ".")): \(context.debugDescription)"
        }
    }

    @Test func `a property of another type than its field is refused with the record and both types`() async throws {
        struct TextAsNumber: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var caption: Int?
            var recordName: String { id }
        }
        #expect(
            try await reading(TextAsNumber.self)
                == "caption: Destination senja can't be read as TextAsNumber: the field 'caption' is a string and no int64")
        struct TimeAsSeconds: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var createdAt: Double
            var recordName: String { id }
        }
        #expect(try await reading(TimeAsSeconds.self).hasSuffix("the field 'createdAt' is a timestamp and no double"))
        struct NumberAsTime: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var rating: Date
            var recordName: String { id }
        }
        #expect(try await reading(NumberAsTime.self).hasSuffix("the field 'rating' is a int64 and no timestamp"))
        struct TextAsPicture: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var details: Asset
            var recordName: String { id }
        }
        #expect(try await reading(TextAsPicture.self).hasSuffix("the field 'details' is a string and no asset"))
        struct TextAsList: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var caption: [String]
            var recordName: String { id }
        }
        #expect(try await reading(TextAsList.self).hasSuffix("the field 'caption' is a string and no list<string>"))
        struct ListOfNumbers: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var tags: [Int]
            var recordName: String { id }
        }
        #expect(try await reading(ListOfNumbers.self).hasSuffix("the field 'tags' is a list<string> and no list<int64>"))
    }

    @Test func `a value that a property's type does not have is refused`() async throws {
        struct Small: Tidemark.Record {
            enum Season: String, Codable, Sendable { case spring }
            static let recordType = "Destination"
            var id: String
            var rating: UInt8?
            var season: Season?
            var caption: UUID?
            var recordName: String { id }
        }
        #expect(
            try await reading(Small.self).contains(
                "the field 'season': Cannot initialize Season from invalid String value winter"))
        struct Name: Tidemark.Record {
            static let recordType = "Destination"
            var id: UUID
            var recordName: String { id.uuidString }
        }
        #expect(try await reading(Name.self).hasSuffix("the field 'id' holds 'senja', which is no UUID"))
        struct Caption: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var caption: UUID?
            var recordName: String { id }
        }
        #expect(try await reading(Caption.self).hasSuffix("the field 'caption' holds 'Senja', which is no UUID"))
    }

    @Test func `a text that only begins with a number is no Decimal`() async throws {
        struct Label: Tidemark.Record {
            static let recordType = "Price"
            var id: String
            var amount: String
            var recordName: String { id }
        }
        struct Price: Tidemark.Record {
            static let recordType = "Price"
            var id: String
            var amount: Decimal
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([
            Label(id: "a", amount: "12 apples"), Label(id: "b", amount: "-12.50"), Label(id: "c", amount: "1e3"),
        ])
        await #expect(throws: DecodingError.self) { _ = try await journal.fetch(Price.self, named: "a") }
        #expect(try await journal.fetch(Price.self, named: "b")?.amount == Decimal(string: "-12.5"))
        #expect(try await journal.fetch(Price.self, named: "c")?.amount == 1000)
    }

    @Test func `whole numbers are read as doubles, and texts and references as one another`() async throws {
        struct Loose: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var rating: Double
            var neighbour: String
            var caption: Reference<Destination>
            var recordName: String { id }
        }
        #expect(try await reading(Loose.self) == "read")
    }

    @Test func `a record that does not encode itself as keys and values is refused`() async throws {
        struct Scalar: Tidemark.Record {
            var recordName: String { "a" }
            init() {}
            init(from decoder: any Decoder) throws {}
            func encode(to encoder: any Encoder) throws {
                var container = encoder.singleValueContainer()
                try container.encode(5)
            }
        }
        struct Nested: Tidemark.Record {
            enum Keys: CodingKey { case place, name }
            var recordName: String { "a" }
            init() {}
            init(from decoder: any Decoder) throws {}
            func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Keys.self)
                var nested = container.nestedContainer(keyedBy: Keys.self, forKey: .place)
                try nested.encode("Senja", forKey: .name)
            }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        func message(_ record: some Tidemark.Record) async throws -> String {
            do {
                try await journal.save(record)
                return "saved"
            } catch EncodingError.invalidValue(_, let context) {
                return context.debugDescription
            }
        }
        #expect(try await message(Scalar()) == "a record encodes itself as keys and values")
        #expect(try await message(Nested()) == "a record's fields are values; give place a Codable type of its own")
    }

    @Test func `a property that is encoded into another object is cleared like any other`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var senja = try ContainerTests.full()
        try await journal.save(senja)
        senja.season = nil
        senja.notes = nil
        #expect(try await journal.save(senja).counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetch(Destination.self, named: "senja") == senja)
        senja.season = .summer
        try await journal.save(senja)
        let context = journal.newContext(mergePolicy: .error)
        var edited = try #require(try await context.fetch(Destination.self, named: "senja"))
        edited.season = nil
        try await context.update(edited)
        try await context.save()
        #expect(try await journal.fetch(Destination.self, named: "senja") == edited)
    }

    @Test func `a record whose UUID is written in upper case is the same record`() async throws {
        struct Visit: Tidemark.Record, Identifiable, Equatable {
            var id: UUID
            var place: String
        }
        let scratch = try Scratch()
        let id = UUID()
        try await scratch.importing(
            lines: [#"{"id": "\#(id.uuidString)", "place": "Senja"}"#], .init(type: "Visit", nameField: "id"))
        let journal = try scratch.journal()
        #expect(try await journal.fetch(Visit.self, id: id) == Visit(id: id, place: "Senja"))
        #expect(try await journal.fetchAll(Visit.self, where: .field("id") == id).count == 1)
        #expect(try await journal.fetchAll(Visit.self, where: .field("id") != id).isEmpty)
        #expect(try await journal.save(Visit(id: id, place: "Senja 2")).counts == ChangeCounts(updated: 1))
        let context = journal.newContext(mergePolicy: .error)
        _ = try await context.fetchAll(Visit.self)
        #expect(try await context.refreshAll() == [])
        try await context.update(Visit(id: id, place: "Senja 3"))
        #expect(try await context.save().counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetchAll(Visit.self) == [Visit(id: id, place: "Senja 3")])
        #expect(try await journal.delete(Visit(id: id, place: "")).counts == ChangeCounts(deleted: 1))
        #expect(try await journal.count(Visit.self) == 0)
    }
}
