import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: saved records are read back unchanged, in every way of reading, and invalid records are refused. Method: real containers
/// in a folder of the test's own; whole records compared.
@Suite(.timeLimit(.minutes(30))) struct ContainerTests {
    static func full() throws -> Destination {
        var senja = Destination("senja", caption: "Senja", details: "An \"island\" 🏔\n in the north")
        senja.rating = 5
        senja.elevation = 0.1
        senja.tags = ["fjord", "snow \"and\" ice", ""]
        senja.position = Location(latitude: 69.3, longitude: 17.1, altitude: 12)
        senja.season = .winter
        senja.notes = [.init(text: "go again", stars: 5)]
        senja.isSecret = true
        senja.raw = Data([0, 255, 1])
        senja.neighbour = Reference("tromso")
        return senja
    }

    @Test func `a record of every kind of property is read as it was saved`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let senja = try Self.full()
        let result = try await journal.save(senja)
        #expect(result.counts == ChangeCounts(inserted: 1))
        #expect(try await journal.fetch(Destination.self, named: "senja") == senja)
        #expect(try await journal.fetchAll(Destination.self) == [senja])
        #expect(try await journal.fetch(Destination.self, named: "tromso") == nil)
        // The store has types that SQL and the tool can read.
        let types = try await journal.reader().read { db in
            try String.fetchAll(db, sql: "SELECT name || ' ' || type FROM tide_fields ORDER BY name")
        }
        #expect(
            types == [
                "caption 1", "createdAt 4", "details 1", "elevation 3", "image 8", "isSecret 34", "neighbour 7", "notes 1",
                "position 6", "rating 2", "raw 5", "season 1", "tags 17",
            ])
    }

    @Test func `saving the same again changes nothing, and a type with fewer properties keeps the other fields`() async throws {
        struct Less: Tidemark.Record {
            static let recordType = "Destination"
            var id: String
            var caption: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        var senja = try Self.full()
        try await journal.save(senja)
        #expect(try await journal.save(senja).counts == ChangeCounts(unchanged: 1))
        try await journal.save(Less(id: "senja", caption: "less"))
        senja.caption = "less"
        #expect(try await journal.fetch(Destination.self, named: "senja") == senja)
        senja.rating = nil
        senja.tags = nil
        #expect(try await journal.save(senja).counts == ChangeCounts(updated: 1))
        #expect(try await journal.fetch(Destination.self, named: "senja") == senja)
    }

    @Test func `records with UUIDs as names are found by them`() async throws {
        struct Visit: Tidemark.Record, Identifiable, Equatable {
            var id = UUID()
            var place: String
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let visit = Visit(place: "Senja")
        try await journal.save(visit)
        #expect(try await journal.fetch(Visit.self, id: visit.id) == visit)
        #expect(try await journal.fetchAll(Visit.self, where: .field("id") == visit.id) == [visit])
        #expect(try await journal.reader().read { try Int.fetchOne($0, sql: "SELECT length(_key) FROM Visit") } == 16)
    }

    @Test func `a picture is stored once, from a file or from memory, and read back`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let picture = Picture.png(1)
        let file = try scratch.write(picture, to: "a picture.png")
        var one = Destination("one", caption: "from a file")
        one.image = Asset(fileURL: file)
        var two = Destination("two", caption: "from memory")
        two.image = Asset(data: picture)
        try await journal.save([one, two])
        let stored = try await journal.fetchAll(Destination.self)
        #expect(stored.map(\.image?.identifier) == [stored[0].image?.identifier, stored[0].image?.identifier])
        #expect(try stored[0].image?.data() == picture)
        #expect(stored[0].image?.size == picture.count)
        #expect(try await journal.save(stored[0]).counts == ChangeCounts(unchanged: 1))
        let report = try StoreVerification(of: journal.directory).run()
        #expect(report.problems == [])
        #expect(report.assets == 1)
    }

    @Test func `a record that a hook refuses is not saved, nor is any other record of that save`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        await #expect(throws: ValidationError("a destination needs a caption", field: "caption")) {
            try await journal.save([Destination("a", caption: "good"), Destination("b", caption: " \n")])
        }
        #expect(try await journal.count(Destination.self) == 0)
        #expect(try journal.history().transactions() == [])
    }

    @Test func `hooks see the stored record`() async throws {
        struct Strict: Tidemark.Record, Equatable {
            var id: String
            var n: Int
            var recordName: String { id }
            func validateForInsert() throws { if n != 0 { throw ValidationError("begins with 0") } }
            func validateForUpdate(from previous: Strict) throws {
                if previous == self { throw ValidationError("unchanged") }
                if n < previous.n { throw ValidationError("never falls") }
            }
            func validateForDelete() throws { if n > 1 { throw ValidationError("too late") } }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        await #expect(throws: ValidationError("begins with 0")) { try await journal.save(Strict(id: "a", n: 1)) }
        try await journal.save(Strict(id: "a", n: 0))
        await #expect(throws: ValidationError("unchanged")) { try await journal.save(Strict(id: "a", n: 0)) }
        try await journal.save(Strict(id: "a", n: 2))
        await #expect(throws: ValidationError("never falls")) { try await journal.save(Strict(id: "a", n: 1)) }
        await #expect(throws: ValidationError("too late")) { try await journal.delete(Strict(id: "a", n: 2)) }
        #expect(try await journal.fetch(Strict.self, named: "a") == Strict(id: "a", n: 2))
    }

    @Test func `values that can't be stored are refused with their names`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        func message(_ change: (inout Destination) -> Void) async -> String {
            var it = Destination("a", caption: "a")
            change(&it)
            let broken = it
            do {
                try await journal.save(broken)
                return "saved"
            } catch let error as EncodingError {
                guard case .invalidValue(_, let context) = error else { return "\(error)" }
                return "\(context.codingPath.map(\.stringValue).joined()): \(context.debugDescription)"
            } catch {
                return "\(error)"
            }
        }
        #expect(await message { $0.elevation = .nan } == "elevation: nan can't be stored")
        #expect(
            await message { $0.position = Location(latitude: 91, longitude: 0) }.hasPrefix("position: the position 91.0, 0.0"))
        #expect(await message { $0.createdAt = .distantFuture.addingTimeInterval(1e12) }.hasPrefix("createdAt: a time outside"))
        #expect(await message { $0.details = "a\0b" }.contains("'details' holds a NUL"))
        #expect(await message { $0.id = "" } == "the record name is empty")
        #expect(await message { $0.image = Asset(fileURL: scratch["missing.png"]) }.contains("Destination a, field 'image'"))
        #expect(await message { $0.image = Asset(data: Data()) }.contains("is empty"))
        #expect(try await journal.count(Destination.self) == 0)
    }

    @Test func `predicates and sorts use the values of the fields`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let all = (0..<20).map { n in
            var it = Destination(
                "d\(n)", caption: n % 2 == 0 ? "fjord \(n)" : "Fjord's \(n)%", createdAt: Date(timeIntervalSince1970: Double(n)))
            it.rating = n % 5 == 0 ? nil : n % 5
            it.tags = n % 3 == 0 ? ["snow", "ice"] : nil
            return it
        }
        try await journal.save(all)
        func names(
            _ predicate: Tidemark.RecordPredicate<Destination>, _ sorts: [RecordSort<Destination>] = []
        ) async throws -> [String] {
            try await journal.fetchAll(Destination.self, where: predicate, sortedBy: sorts).map(\.id)
        }
        func expected(_ test: (Destination) -> Bool) -> [String] { all.filter(test).map(\.id) }
        #expect(try await names(.field("rating") > 2) == expected { $0.rating ?? 0 > 2 })
        #expect(try await names(.field("rating") == nil) == expected { $0.rating == nil })
        #expect(try await names(.field("rating") != 3) == expected { $0.rating != 3 })
        #expect(try await names(!(.field("rating") > 2)) == expected { !($0.rating ?? 0 > 2) })
        #expect(try await names(.field("caption").contains("'s 1")) == expected { $0.caption.contains("'s 1") })
        #expect(try await names(.field("caption").begins(with: "fjord 1")) == expected { $0.caption.hasPrefix("fjord 1") })
        #expect(try await names(.field("tags").contains("ice")) == expected { $0.tags != nil })
        #expect(try await names(.field("id").isIn(["d3", "d7", "none"])) == ["d3", "d7"])
        #expect(
            try await names(.field("createdAt") >= Date(timeIntervalSince1970: 18) || .field("id") == "d0") == [
                "d0", "d18", "d19",
            ])
        #expect(try await names(.sql("length(caption) = ? -- a comment", 7)) == expected { $0.caption.count == 7 })
        #expect(try await names(.sql("_name LIKE 'd1_'"), [.descending("id")]).first == "d19")
        #expect(
            try await names(.field("rating") > 3, [.descending("rating"), .ascending("createdAt")]) == expected { $0.rating == 4 }
        )
        #expect(try await journal.count(Destination.self, where: .field("rating") == 1) == 4)
        await #expect(throws: StoreError(.schema, "")) { try await names(.field("nonsense") == 1) }
        // A comparison that can't match is an error, not an empty result.
        await #expect(throws: StoreError(.invalid, "")) { try await names(.field("rating") == "4") }
        await #expect(throws: StoreError(.invalid, "")) { try await names(.field("createdAt") > 5) }
        #expect(try await names(.field("rating") == 4.0) == names(.field("rating") == 4))
        await #expect(throws: StoreError(.sql, "")) { try await names(.sql("caption = ")) }
        await #expect(throws: StoreError(.schema, "")) { try await names(.field("rating") == 1, [.ascending("x; DROP TABLE y")]) }
    }

    @Test func `records of both stores are found, in one order`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let mine = (0..<5).map { Destination("m\($0)", caption: "mine", createdAt: Date(timeIntervalSince1970: Double($0 * 2))) }
        let theirs = (0..<5).map {
            Destination("t\($0)", caption: "theirs", createdAt: Date(timeIntervalSince1970: Double($0 * 2 + 1)))
        }
        try await journal.save(mine)
        try await journal.save(theirs, in: scratch.acceptedShare())
        let found = try await journal.fetchAll(Destination.self, sortedBy: [.descending("createdAt")], limit: 5)
        #expect(found.map(\.id) == ["t4", "m4", "t3", "m3", "t2"])
        // A record stays in its store.
        var one = theirs[0]
        one.caption = "edited"
        let result = try await journal.save(one)
        #expect(result.transactions.keys.map(\.self) == [.shared])
        try await journal.delete(theirs[1])
        #expect(try await journal.count(Destination.self) == 9)
    }

    @Test func `a field that only the other store has counts as empty`() async throws {
        struct Place: Tidemark.Record {
            var id: String
            var rating: Int?
            var recordName: String { id }
        }
        struct Former: Tidemark.Record {
            static let recordType = "Place"
            var id: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Former(id: "s")], in: scratch.acceptedShare())
        try await journal.save([Place(id: "p", rating: 5), Place(id: "q", rating: 1)])
        let all = try await journal.fetchAll(Place.self, sortedBy: [.descending("rating")])
        #expect(all.map(\.id) == ["p", "q", "s"])
        #expect(try await journal.fetchAll(Place.self, where: .field("rating") > 3).map(\.id) == ["p"])
        #expect(try await journal.count(Place.self, where: .field("rating") == nil) == 1)
        #expect(try await journal.deleteAll(Place.self, where: .field("rating") < 3) == ["q"])
        // A field that no store has is an error, before anything is deleted.
        await #expect(throws: StoreError(.schema, "")) {
            try await journal.deleteAll(Place.self, where: .field("ratting") < 9 || .field("id") != "x")
        }
        #expect(try await journal.count(Place.self) == 2)
    }

    @Test func `batch operations return the names of the changed records, and history has their values`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        let all = (0..<100).map { n in
            var it = Destination("d\(n)", caption: "c\(n)")
            it.rating = n % 4
            return it
        }
        try await journal.save(all)
        let updated = try await journal.updateAll(
            Destination.self, where: .field("rating") == 3, set: ["caption": "three", "rating": nil])
        #expect(updated == all.filter { $0.rating == 3 }.map(\.id))
        let deleted = try await journal.deleteAll(Destination.self, where: .field("rating") == 2)
        #expect(deleted == all.filter { $0.rating == 2 }.map(\.id))
        #expect(try await journal.count(Destination.self) == 75)
        #expect(try await journal.fetchAll(Destination.self, where: .field("caption") == "three").count == 25)
        let transactions = try journal.history().transactions()
        #expect(transactions.map { [$0.inserted, $0.updated, $0.deleted] } == [[0, 0, 25], [0, 25, 0], [100, 0, 0]])
        let last = try journal.history().changes(ofRecord: "d2")
        #expect(last.map(\.kind) == [.delete, .insert])
        #expect(last[0].fields.first { $0.field == "caption" }?.before == .string("c2"))
        await #expect(throws: StoreError(.schema, "")) { try await journal.updateAll(Destination.self, set: ["nonsense": 1]) }
        await #expect(throws: StoreError(.invalid, "")) { try await journal.updateAll(Destination.self, set: ["rating": "five"]) }
        #expect(try await journal.deleteAll(Destination.self).count == 75)
        let problems = try StoreVerification(of: journal.directory).run().problems
        #expect(problems == [], "\(problems)")
    }

    @Test func `a production container refuses fields that its schema lacks`() async throws {
        let scratch = try Scratch()
        let directory = try ContainerDirectory(openingOrCreatingAt: scratch.container, environment: .production)
        let journal = try PersistentContainer(directory: directory)
        await #expect(throws: StoreError(.schema, "")) { try await journal.save(Destination("a", caption: "a")) }
        #expect(try await journal.fetchAll(Destination.self) == [])
    }

    @Test(.timeLimit(.minutes(30))) func `observations see the changes of this process and of others`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        // Another opening acts as another process: it has a notifier of its own.
        let other = try scratch.journal()
        struct Other: Tidemark.Record {
            var id: String
            var recordName: String { id }
        }
        try await journal.save(Destination("first", caption: "0"))
        try await journal.save(Other(id: "o"))
        // Each state is delivered once, and changes of other types are not.
        var values = journal.observe(Destination.self, sortedBy: [.ascending("caption")]).makeAsyncIterator()
        func next() async throws -> [String]? { try await values.next()?.map(\.id) }
        #expect(try await next() == ["first"])
        try await journal.save(Destination("a", caption: "a"))
        #expect(try await next() == ["first", "a"])
        try await journal.save(Other(id: "p"))
        try await other.save(Other(id: "q"))
        try await other.save(Destination("b", caption: "b"))
        #expect(try await next() == ["first", "a", "b"])
    }

    @Test func `a snapshot sees one state while others write`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save([Destination("a", caption: "a"), Destination("b", caption: "b")])
        let before = try journal.snapshot()
        try await journal.deleteAll(Destination.self, where: .field("id") == "a")
        try await journal.save(Destination("c", caption: "c"))
        #expect(try await before.fetchAll(Destination.self).map(\.id) == ["a", "b"])
        #expect(try await journal.fetchAll(Destination.self).map(\.id) == ["b", "c"])
        #expect(try await before.reader().read { try Int.fetchOne($0, sql: "SELECT count(*) FROM Destination") } == 2)
    }
}
