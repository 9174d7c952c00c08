import Foundation
import GRDB
import TestSupport
import Testing
import Tidemark
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: names of fields and types that differ only by case are refused wherever they are declared, with the other name, because
/// SQL does not distinguish them. Method: each way to declare a name.
@Suite(.timeLimit(.minutes(30))) struct NameCollisionTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private func fields(_ type: String = "Item") throws -> [String] {
        try StoreReader(container: ContainerDirectory(openingAt: scratch.container)).type(named: type).fields.map(\.name)
    }

    private func csv(_ text: String) throws -> URL { try scratch.write(text, to: "table.csv") }

    @Test func `a schema file with too many fields, keys or types is refused at once`() throws {
        func refusal(_ text: String) throws -> String {
            let file = try scratch.write(text, to: "large.json")
            return try #require(throws: ImportError.self) { try SchemaFile.read(file) }.message
        }
        func repeated(_ text: String, _ count: Int) -> String { Array(repeating: text, count: count).joined(separator: ",") }
        let field = #"{"name":"a","type":"int64"}"#
        #expect(
            try refusal(#"{"types":[{"name":"T","fields":[\#(repeated(field, 200_000))]}]}"#).hasSuffix(
                "types[0].fields: there are 200000 fields, and at most 255 can be"))
        #expect(
            try refusal(#"{"types":[{"name":"T","fields":[\#(field)],"uniqueKeys":[\#(repeated(#"["a"]"#, 500_000))]}]}"#)
                .hasSuffix(
                    "types[0].uniqueKeys: there are 500000 unique keys, and at most 64 can be"))
        #expect(
            try refusal(#"{"types":[\#(repeated(#"{"name":"T","fields":[]}"#, 200_000))]}"#).hasSuffix(
                "types: there are 200000 types, and at most 10000 can be"))
    }

    @Test func `a row with a field that differs by case from another of the manifest is refused, and the rest is imported`()
        async throws
    {
        let summary = try await scratch.importing(
            lines: [
                #"{"id": "k1", "Name": "A", "name": "b"}"#, #"{"id": "k2", "Name": "Q"}"#, #"{"id": "k3", "NAME": "A"}"#,
                #"{"ID": "k4", "Name": "A"}"#,
            ], .init(type: "Item", nameField: "id", batchSize: 1))
        #expect(summary.changes.inserted == 1 && summary.rejected == 3)
        #expect(summary.firstRejections.map(\.field) == ["name", "NAME", "ID"])
        let other = "by the case of letters only; give it that name, or another one, with --map"
        #expect(summary.firstRejections.map(\.reason).filter { $0.contains(other) }.count == 3)
        #expect(summary.firstRejections[1].reason == "'NAME' differs from the field 'Name' \(other)")
        #expect(summary.firstRejections[2].reason == "'ID' differs from the field 'id' \(other)")
        #expect(try fields() == ["Name"])
        // The fields of the store count as well.
        let again = try await scratch.importing(lines: [#"{"id": "k5", "naMe": "A"}"#], .init(type: "Item", nameField: "id"))
        #expect(again.rejected == 1 && again.changes.isUnchanged)
    }

    @Test(arguments: ["id,Name,name", "Id,id,Name", "id,Name,ID"])
    func `a CSV whose columns differ by case is refused`(_ header: String) async throws {
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(csv("\(header)\n1,A,b\n"), .init(type: "Item", nameField: "id"))
        }
        #expect(error?.code == .manifest && error?.message.contains("by the case of letters only") == true)
        #expect(!FileManager.default.fileExists(atPath: scratch.container.path))
    }

    @Test func `a column of a CSV that differs by case from a field of the store is refused, and can be mapped`() async throws {
        try await scratch.importing(csv("id,Name\n1,A\n"), .init(type: "Item", nameField: "id"))
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(csv("id,name\n1,B\n"), .init(type: "Item", nameField: "id"))
        }
        #expect(error?.message.contains("column 2, 'name', differs from the field 'Name'") == true)
        let mapped = try await scratch.importing(
            csv("id,name\n1,B\n"), .init(type: "Item", nameField: "id", mappings: [(from: "name", to: "Name")]))
        #expect(mapped.changes.updated == 1)
    }

    @Test func `a record type that differs by case from another is refused before anything is read`() async throws {
        try await scratch.importing(lines: [#"{"id": "a", "title": "A"}"#], .init(type: "Book", nameField: "id"))
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id": "b", "title": "B"}"#], .init(type: "book", nameField: "id"))
        }
        #expect(error?.code == .options && error?.message.contains("'book' differs from the record type 'Book'") == true)
    }

    @Test func `a schema file whose names differ by case is refused at its place`() throws {
        func error(_ types: String) throws -> String {
            let file = try scratch.write("{\"types\": [\(types)]}", to: "schema.json")
            return try #require(throws: ImportError.self) { try SchemaFile.read(file) }.message
        }
        let fields = #"[{"name": "Name", "type": "string"}, {"name": "name", "type": "string"}]"#
        #expect(
            try error(#"{"name": "A", "fields": \#(fields)}"#).contains("types[0].fields[1].name: the field 'name' of A differs"))
        let id = #"{"name": "A", "nameField": "ID", "fields": [{"name": "id", "type": "string"}]}"#
        #expect(try error(id).contains("types[0].fields[0].name: the field 'id' of A differs from the field 'ID'"))
        #expect(
            try error(#"{"name": "A", "fields": []}, {"name": "a", "fields": []}"#).contains("types[1].name: the record type 'a'")
        )
        #expect(
            try error(#"{"name": "A", "fields": []}, {"name": "A", "fields": []}"#).contains("types[1].name: 'A' occurs twice"))
    }

    @Test func `a Swift type whose fields differ by case can't be saved`() async throws {
        struct Item: Tidemark.Record {
            var id: String
            var name: String
            // swift-format-ignore: AlwaysUseLowerCamelCase
            var Name: String
            var recordName: String { id }
        }
        struct Former: Tidemark.Record {
            static let recordType = "Item"
            var id: String
            // swift-format-ignore: AlwaysUseLowerCamelCase
            var NAME: String
            var recordName: String { id }
        }
        // swift-format-ignore: TypeNamesShouldBeCapitalized
        struct item: Tidemark.Record {
            var id: String
            var text: String
            var recordName: String { id }
        }
        let journal = try scratch.journal()
        let both = try await #require(throws: StoreError.self) { try await journal.save(Item(id: "1", name: "a", Name: "b")) }
        #expect(both.code == .schema && both.message.contains("the field 'Name' of Item differs from the field 'name'"))
        try await journal.save(Former(id: "1", NAME: "a"))
        await #expect(throws: StoreError(.schema, "")) { try await journal.save(Item(id: "2", name: "a", Name: "b")) }
        await #expect(throws: StoreError(.schema, "")) { try await journal.save(item(id: "2", text: "a")) }
        #expect(try fields() == ["NAME"])
        #expect(try await journal.count(Former.self) == 1)
    }

    @Test func `conditions in SQL are refused for fields that an older store has in two spellings`() async throws {
        struct Item: Tidemark.Record {
            var id: String
            // swift-format-ignore: AlwaysUseLowerCamelCase
            var Name: String
            var recordName: String { id }
        }
        try await scratch.importing(
            lines: [#"{"id": "k1", "Name": "A", "other": "b"}"#, #"{"id": "k2", "Name": "Q", "other": "A"}"#],
            .init(type: "Item", nameField: "id"))
        try SharedPlaces(scratch.container, .private).change { db in
            try db.execute(
                sql: """
                    ALTER TABLE "Item" RENAME COLUMN "other" TO "name_2";
                    UPDATE tide_fields SET name = 'name', column_name = 'name_2' WHERE name = 'other';
                    UPDATE tide_meta SET value = value + 1 WHERE key = 'schema_generation';
                    """)
        }
        let directory = try ContainerDirectory(openingAt: scratch.container)
        let query = RecordQuery(type: "Item", condition: "name = 'A'")
        let reader = try StoreReader(container: directory)
        #expect(throws: StoreError(.sql, "")) { try reader.forEachRecord(query) { _ in } }
        let store = try RecordStore(container: directory)
        await #expect(throws: StoreError(.sql, "")) {
            try await store.delete(matching: query, author: TransactionAuthor("test", origin: .save))
        }
        let journal = try scratch.journal()
        await #expect(throws: StoreError(.sql, "")) { try await journal.fetchAll(Item.self, where: .sql("name = 'A'")) }
        await #expect(throws: StoreError(.sql, "")) { try await journal.deleteAll(Item.self, where: .sql("name = 'A'")) }
        #expect(try await journal.fetchAll(Item.self, where: .field("Name") == "A").map(\.id) == ["k1"])
    }
}
