import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// Goal: a type that grows can still be read. Method: imports that add fields, then its table, view and export.
@Suite(.timeLimit(.minutes(30))) struct SchemaTests {
    private func fields(_ numbers: Range<Int>) -> [RecordTypeSchema.Field] { numbers.map { .init(name: "f\($0)", type: .int64) } }

    @Test func `more fields than can be synchronised are refused with the type's name`() async throws {
        let scratch = try Scratch()
        let limit = RecordTypeSchema.fieldLimit
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
        try await store.declare([RecordTypeSchema(name: "Wide", fields: fields(0..<limit))], environment: .development)
        let reason = "would have \(limit + 1) fields; at most \(limit) can be synchronised"
        for schema in [
            RecordTypeSchema(name: "Wide", fields: fields(limit..<limit + 1)),
            RecordTypeSchema(name: "Wider", fields: fields(0..<limit + 1)),
        ] {
            do {
                try await store.declare([schema], environment: .development)
                Issue.record("\(schema.name) was taken")
            } catch {
                #expect(error.code == .schema)
                #expect(error.message.hasPrefix("the record type '\(schema.name)' \(reason)"))
            }
        }
        #expect(try await store.types().map(\.fields.count) == [limit])
        let row = "{\"id\": \"a\", " + (0..<limit).map { "\"f\($0)\": \($0)" }.joined(separator: ", ") + "}"
        try await scratch.importing(lines: [row], .destination { $0.type = "Wide" })
        #expect(try scratch.verification().isOK)
        let more = await #expect(throws: ImportError.self) {
            try await scratch.importing(lines: [#"{"id": "a", "g": 1}"#], .destination { $0.type = "Wide" })
        }
        #expect(more?.message.contains("the record type 'Wide' \(reason)") == true)
        #expect(try await store.types().map(\.fields.count) == [limit])
    }

    @Test(arguments: ["id", "ID"])
    func `a field with the name of the name field takes its place`(name: String) async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        try await scratch.importing(lines: [#"{"key": "b", "\#(name)": 7, "n": 2}"#], .destination { $0.nameField = "key" })
        #expect(
            try scratch.records("Destination") == [#"{"key":"a","n":1}"#, #"{"key":"b","n":2,"\#(name)":7}"#])
        let columns = try await scratch.reader().database.read { db in
            try String.fetchAll(db, sql: "SELECT name FROM pragma_table_info('_Destination')")
        }
        #expect(Set(columns.map { $0.lowercased() }).count == columns.count, "\(columns)")
        #expect(columns.contains("key") && columns.contains(name))
        let found = try await scratch.reader().database.read { db in
            try Int.fetchOne(db, sql: "SELECT \(name) FROM _Destination WHERE _name = 'b'")
        }
        #expect(found == 7)
        for format in BulkExport.Format.allCases {
            let file = scratch["export.\(format.rawValue)"]
            let container = try ContainerDirectory(openingAt: scratch.container)
            _ = try BulkExport(from: container, type: "Destination", format: format, to: .file(file)).run()
            let again = try await scratch.importing(file, ImportOptions(type: "Destination"))
            #expect(again.changes == ChangeCounts(unchanged: 2))
        }
        #expect(try scratch.verification().isOK)
    }

    @Test func `a schema file's field with the name of the name field takes its place`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        let schema = RecordTypeSchema(name: "Destination", nameField: "id", fields: [.init(name: "id", type: .string)])
        try await store.declare([schema], environment: .development)
        #expect(try await store.types()[0].nameField == nil)
        #expect(try scratch.records("Destination") == [#"{"_name":"a","n":1}"#])
    }
}
