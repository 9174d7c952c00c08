import Foundation
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Goal: a program changes its types by the API. Method: two Swift types represent the versions of a program before and after.
@Suite(.timeLimit(.minutes(30))) struct ContainerSchemaTests {
    enum Kind: String, Codable, Sendable { case town, island }

    struct OldTrip: Tidemark.Record, Equatable {
        static let recordType = "Trip"
        var id: String
        var caption: String
        var stars: Int?
        var photo: String?
        var recordName: String { id }
    }

    struct NewTrip: Tidemark.Record, Equatable {
        static let recordType = "Trip"
        var id: String
        var title: String
        var rating: Double?
        var photo: Asset?
        var recordName: String { id }
    }

    private static let changes: [SchemaChange] = [
        .renameField("caption", of: "Trip", to: "title"),
        .retypeField("stars", of: "Trip", to: .init(name: "rating", type: .double)),
        .retypeField("photo", of: "Trip", to: .init(name: "photo", type: .asset)),
    ]

    @Test func `a program makes its changes when it starts, and again`() async throws {
        let scratch = try Scratch()
        try scratch.write(Picture.png(1), to: "pictures/1.png")
        do {
            let old = try scratch.journal()
            // An empty container has nothing to change.
            #expect(try await old.changeSchema(Self.changes, files: scratch["pictures"]).isDone)
            try await old.save([
                OldTrip(id: "a", caption: "Senja", stars: 4, photo: "1.png"), OldTrip(id: "b", caption: "Bodø", photo: ""),
            ])
        }
        let journal = try scratch.journal()
        await #expect(throws: StoreError.self) { try await journal.changeSchema(Self.changes) }
        let dry = try await journal.changeSchema(Self.changes, files: scratch["pictures"], dryRun: true)
        #expect(dry.problems.isEmpty && dry.steps.map(\.records) == [2, 1, 2])
        #expect(try journal.schema().first?.fields.map(\.name).sorted() == ["caption", "photo", "stars"])
        let plan = try await journal.changeSchema(Self.changes, files: scratch["pictures"])
        #expect(plan.steps == dry.steps)
        let trips = try await journal.fetchAll(NewTrip.self, sortedBy: [.ascending(\.id)])
        #expect(trips.map(\.title) == ["Senja", "Bodø"] && trips.map(\.rating) == [4, nil])
        #expect(try trips[0].photo?.data() == Picture.png(1) && trips[1].photo == nil)
        #expect(try await journal.changeSchema(Self.changes, files: scratch["pictures"]).isDone)
        #expect(try scratch.verification().isOK)
    }

    @Test func `an observation and a reader see the new fields`() async throws {
        let scratch = try Scratch()
        let journal = try scratch.journal()
        try await journal.save(OldTrip(id: "a", caption: "Senja"))
        let before = try await journal.fetchAll(OldTrip.self)
        #expect(before.count == 1)
        try await journal.changeSchema([.renameField("caption", of: "Trip", to: "title")])
        struct Titled: Tidemark.Record, Equatable {
            static let recordType = "Trip"
            var id: String
            var title: String
            var recordName: String { id }
        }
        let reader = try StoreReader(container: journal.directory)
        let fields = try reader.types()[0].fields.map(\.name)
        #expect(fields.contains("title") && !fields.contains("caption"))
        #expect(try await journal.fetchAll(Titled.self) == [Titled(id: "a", title: "Senja")])
        let refused = await #expect(throws: SchemaChangeRefused.self) {
            try await journal.changeSchema([.retypeField("title", of: "Trip", to: .init(name: "title", type: .double))])
        }
        #expect(refused?.plan.problems.map(\.record.name) == ["a"])
        #expect(refused?.description.contains("1 value") == true)
    }

    @Test func `an unknown enum value of a newer version concerns one record only, and stays as it is`() async throws {
        struct Known: Tidemark.Record, Equatable {
            static let recordType = "Place"
            var id: String
            var kind: Kind
            var name: String
            var recordName: String { id }
        }
        struct Newer: Tidemark.Record, Equatable {
            static let recordType = "Place"
            var id: String
            var kind: String
            var name: String
            var recordName: String { id }
        }
        let scratch = try Scratch()
        do {
            let newer = try scratch.journal()
            try await newer.save([
                Newer(id: "a", kind: "town", name: "Bodø"), Newer(id: "b", kind: "archipelago", name: "Lofoten"),
            ])
        }
        let journal = try scratch.journal()
        let found = try await journal.fetchResult(Known.self)
        #expect(found.records.map(\.id) == ["a"])
        #expect(found.unreadable.map(\.record.name) == ["b"])
        // The older version changes properties by their names, and the value that it does not know stays.
        #expect(
            try await journal.updateAll(Known.self, where: .field("name") == "Lofoten", set: ["name": "Lofoten in May"]) == ["b"])
        #expect(try scratch.records("Place").last?.contains(#""kind":"archipelago""#) == true)
    }
}
