import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

/// Goal: a type that grows stays one that can be read. Method: imports that make it grow, then its table, view and export.
@Suite struct SchemaTests {
    private func fields(_ numbers: Range<Int>) -> [RecordTypeSchema.Field] { numbers.map { .init(name: "f\($0)", type: .int64) } }

    @Test func `more fields than a table can have are refused with the type's name`() async throws {
        let scratch = try Scratch()
        let store = try RecordStore(container: ContainerDirectory(openingOrCreatingAt: scratch.container))
        try await store.declare([RecordTypeSchema(name: "Wide", fields: fields(0..<1900))], environment: .development)
        for schema in [
            RecordTypeSchema(name: "Wide", fields: fields(1900..<1901)),
            RecordTypeSchema(name: "Wider", fields: fields(0..<1901)),
        ] {
            do {
                try await store.declare([schema], environment: .development)
                Issue.record("\(schema.name) was taken")
            } catch {
                #expect(error.code == .schema)
                #expect(error.message == "the record type '\(schema.name)' would have 1901 fields; at most 1900 are allowed")
            }
        }
        #expect(try await store.types().map(\.fields.count) == [1900])
        let row = "{\"id\": \"a\", " + (0..<1900).map { "\"f\($0)\": \($0)" }.joined(separator: ", ") + "}"
        try await scratch.importing(lines: [row], .destination { $0.type = "Wide" })
        #expect(try scratch.verification().isOK)
        let more = try await scratch.importing(lines: [#"{"id": "a", "g": 1}"#], .destination { $0.type = "Wide" })
        #expect(more.rejected == 1)
    }

    @Test(arguments: ["id", "ID"])
    func `a field of the name field's name takes its place`(name: String) async throws {
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

    @Test func `a schema file's field of the name field's name takes its place`() async throws {
        let scratch = try Scratch()
        try await scratch.importing(lines: [#"{"id": "a", "n": 1}"#], .destination())
        let store = try RecordStore(container: ContainerDirectory(openingAt: scratch.container))
        let schema = RecordTypeSchema(name: "Destination", nameField: "id", fields: [.init(name: "id", type: .string)])
        try await store.declare([schema], environment: .development)
        #expect(try await store.types()[0].nameField == nil)
        #expect(try scratch.records("Destination") == [#"{"_name":"a","n":1}"#])
    }
}
