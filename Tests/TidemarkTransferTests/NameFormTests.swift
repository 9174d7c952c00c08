import Foundation
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: equal short ids of several types are different records, are found by references, and are exported unchanged. Method:
/// tables with the same ids, whole stores compared.
@Suite(.timeLimit(.minutes(30))) struct NameFormTests {
    private func names(_ scratch: Scratch, _ type: String) throws -> [String] {
        var names: [String] = []
        try scratch.reader().forEachRecord(RecordQuery(type: type, sortField: "_name")) { names.append($0.name) }
        return names
    }

    private func options(_ type: String, _ change: (inout ImportOptions) -> Void = { _ in }) -> ImportOptions {
        var options = ImportOptions(type: type, nameField: "id")
        options.namesHaveType = true
        change(&options)
        return options
    }

    @Test func `two tables with the same ids do not collide, and their references find the records`() async throws {
        let scratch = try Scratch()
        let users = try scratch.write("id,name\n1,Ada\n2,Ben\n", to: "users.csv")
        let orders = try scratch.write("id,user,total\n1,2,9.5\n2,2,3\n3,,1\n", to: "orders.csv")
        let ordering = options("Order") { $0.references = [("user", "User")] }
        for round in 0..<2 {
            #expect(
                try await scratch.importing(users, options("User")).changes
                    == (round == 0 ? .init(inserted: 2) : .init(unchanged: 2)))
            #expect(
                try await scratch.importing(orders, ordering).changes == (round == 0 ? .init(inserted: 3) : .init(unchanged: 3)))
        }
        // The target of a field need not be given again.
        #expect(try await scratch.importing(orders, options("Order")).changes == ChangeCounts(unchanged: 3))
        #expect(try names(scratch, "User") == ["User:1", "User:2"])
        #expect(try names(scratch, "Order") == ["Order:1", "Order:2", "Order:3"])
        #expect(
            try scratch.records("Order") == [
                #"{"id":"1","user":"User:2","total":9.5}"#, #"{"id":"2","user":"User:2","total":3.0}"#,
                #"{"id":"3","total":1.0}"#,
            ])
        #expect(try scratch.reader().type(named: "Order").field(named: "user")?.type == .reference)
        // An export has the short ids, and whole names in references: an import reads both as the same records.
        for format in [BulkExport.Format.jsonl, .csv] {
            let file = scratch["orders.\(format == .csv ? "csv" : "jsonl")"]
            _ = try BulkExport(
                from: ContainerDirectory(openingAt: scratch.container), type: "Order", format: format, to: .file(file)
            ).run()
            #expect(try await scratch.importing(file, ordering).changes == ChangeCounts(unchanged: 3))
        }
        #expect(try scratch.verification().isOK)
    }

    @Test func `an integer refers to the record of that id`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": 1, "user": 12}"#], options("Order") { $0.references = [("user", "User")] })
        #expect(try scratch.records("Order") == [#"{"id":"1","user":"User:12"}"#])
    }

    @Test func `a condition may use the id of the source`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": 7, "n": 1}"#, #"{"id": 8, "n": 2}"#], options("Item"))
        var found: [String] = []
        try scratch.reader().forEachRecord(RecordQuery(type: "Item", condition: "id = '7'")) { found.append($0.name) }
        try scratch.reader().forEachRecord(RecordQuery(type: "Item", condition: "_name = 'Item:8'")) { found.append($0.name) }
        #expect(found == ["Item:7", "Item:8"])
    }

    @Test func `UUIDs, and names that have the type already, stay as they are`() async throws {
        let scratch = try Scratch()
        let uuids = ["c71054b9-8c7a-4910-b202-192af0305268", "5F0C9D5E-6A4B-4E0E-9A3F-1D2C3B4A5F60"]
        try await scratch.importing(
            lines: (uuids + ["Item:1", "Items:1", "c71054b9"]).map { #"{"id": "\#($0)"}"# }, options("Item"))
        #expect(try Set(names(scratch, "Item")) == Set(uuids + ["Item:1", "Item:Items:1", "Item:c71054b9"]))
    }

    @Test func `a type whose records have plain names keeps them`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "senja"}"#], options("Place") { $0.namesHaveType = false })
        let summary = try await scratch.importing(lines: [#"{"id": "senja"}"#, #"{"id": "bergen"}"#], options("Place"))
        #expect(summary.changes == ChangeCounts(inserted: 1, unchanged: 1))
        #expect(try names(scratch, "Place") == ["bergen", "senja"])
    }

    @Test func `an id that is too long with its type is refused by line`() async throws {
        let scratch = try Scratch()
        let ids = [String(repeating: "x", count: 250), String(repeating: "y", count: 251)]
        let summary = try await scratch.importing(
            lines: ids.map { #"{"id": "\#($0)"}"# }, options("Type") { $0.rejects = scratch["rejects.jsonl"] })
        #expect(summary.changes.inserted == 1)
        let rejects = try scratch.rejects()
        #expect(rejects.map { "\($0.line) \($0.field ?? "") \($0.code)" } == ["2 id badName"])
        #expect(rejects.first?.reason == "the record name is longer than 255 bytes with 'Type:' before it")
    }

    @Test func `lists of references and a schema file's targets get the type, too`() async throws {
        let scratch = try Scratch()
        let file = try scratch.write(
            """
            {"types": [{"name": "Trip", "nameField": "id", "fields": [
                {"name": "stops", "type": "list<reference>", "target": "Stop"}, {"name": "first", "type": "reference", "target": "Stop"}]}]}
            """, to: "schema.json")
        let schema = try SchemaFile.read(file)
        try await scratch.importing(
            lines: [#"{"id": 1, "stops": ["a", "Stop:b", "c71054b9-8c7a-4910-b202-192af0305268"], "first": "a"}"#],
            options("Trip") { $0.schema = schema })
        #expect(
            try scratch.records("Trip") == [
                #"{"id":"1","stops":["Stop:a","Stop:b","c71054b9-8c7a-4910-b202-192af0305268"],"first":"Stop:a"}"#
            ])
        try scratch.write(
            #"{"types": [{"name": "T", "fields": [{"name": "f", "type": "string", "target": "U"}]}]}"#, to: "wrong.json")
        let error = #expect(throws: ImportError.self) { try SchemaFile.read(scratch["wrong.json"]) }
        #expect(error?.message.hasSuffix("types[0].fields[0].target: only a reference has a target, and 'f' is string") == true)
    }

    @Test func `without names, the summary lists the columns that could give them`() async throws {
        let scratch = try Scratch()
        let books = "isbn,title,shelf,note\n1,A,x,\n2,B,x,n\n"
        let summary = try await scratch.importing(try scratch.write(books, to: "b.csv"), ImportOptions(type: "Book"))
        #expect(summary.namingColumns == ["isbn", "title"])
        let named = try await scratch.importing(scratch["b.csv"], ImportOptions(type: "Named", nameField: "isbn"))
        #expect(named.namingColumns == nil)
    }

    @Test func `a type that differs from another only by case is refused`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": 1}"#], options("Book"))
        let error = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id": 2}"#], options("book"))
        }
        #expect(error?.code == .options)
        #expect(error?.message.hasPrefix("the record type 'book' differs from the record type 'Book'") == true)
    }
}
