import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

struct RecordsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows records, or the record types. This is the default subcommand of 'records'.",
        discussion: """
            Without --type, the record types of the container. If other owners share records of the type, they are listed as well, and a \
            column names the store of each record.

            The condition is SQL over the type's fields, _name and the system columns; times are microseconds since 1970.

            Examples:
              tidemark records MyJournal.tidemark
              tidemark records MyJournal.tidemark --type Destination --sort createdAt \\
                  --descending --limit 10
              tidemark records MyJournal.tidemark --type Destination \\
                  --where "rating >= 4 AND caption LIKE '%Iceland%'" --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type. (default: lists the types)")
    var type: String?

    @Option(
        name: .customLong("where"), help: ArgumentHelp("Only records that match this condition.", valueName: "SQL-expression"))
    var condition: String?

    @Option(help: ArgumentHelp("The field to sort by. (default: the order of insertion)", valueName: "field"))
    var sort: String?

    @Option(help: "The store: private or shared. (default: both)")
    var scope: StoreScope?

    @Flag(help: "Sorts in descending order.")
    var descending = false

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of records.", valueName: "n"))
    var limit: Int?

    @Flag(help: "Prints a JSON array, one record per line.")
    var json = false

    func validate() throws {
        if type == nil, condition != nil || sort != nil || descending || limit != nil {
            throw ValidationError("--where, --sort, --descending and --limit need --type")
        }
        if let limit, limit < 0 { throw ValidationError("--limit takes a number from 0 on") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let scopes = scope.map { [$0] } ?? StoreScope.allCases.filter { $0 == .private || directory.hasStore($0) }
            let readers = try scopes.map { try StoreReader(container: directory, scope: $0) }
            guard let type else { return try listTypes(readers) }
            let having = try readers.filter { try $0.types().contains { $0.name == type } }
            let query = RecordQuery(type: type, condition: condition, sortField: sort, isDescending: descending, limit: limit)
            if scope == nil, having.contains(where: { $0.scope == .shared }) {
                let list = try MergedRecords(having, query)
                return try tell(json ? list.printJSON() : list.printTable(), of: type)
            }
            let reader = having.first ?? readers[0]
            let schema: RecordTypeSchema
            do {
                schema = try reader.type(named: type)
            } catch let error as StoreError where error.code == .schema {
                throw StoreError(.schema, error.message + Suggestion.question(type, among: try reader.types().map(\.name)))
            }
            if json {
                try printJSON(reader, query: query, schema: schema)
            } else {
                try printTable(reader, query: query, schema: schema)
            }
        }
    }

    /// Names the damaged ones of the shown records on standard error.
    private func tell(_ damaged: [String], of type: String) throws {
        guard !damaged.isEmpty else { return }
        for name in damaged.prefix(10) {
            Output.error("tidemark: \(RecordName(type: type, name: name).title) is damaged: its values are not what was written")
        }
        throw ending(
            "\(Wording.count(damaged.count, "record")) shown above damaged; repair with `tidemark verify --repair`", .dataError)
    }

    private struct TypeLine: Encodable {
        let type, store: String
        let records: Int
        let nameField: String?
        let fields: [Field]

        struct Field: Encodable {
            let name, type: String
        }
    }

    private func listTypes(_ readers: [StoreReader]) throws {
        let lines = try readers.flatMap { reader in
            try reader.types().map { type in
                TypeLine(
                    type: type.name, store: reader.scope.name, records: try reader.count(type: type.name),
                    nameField: type.nameField,
                    fields: type.fields.map { .init(name: $0.name, type: $0.typeName) })
            }
        }
        if json { return try Output.json(lines) }
        guard !lines.isEmpty else { return try Output.line("there are no records yet") }
        let hasShared = lines.contains { $0.store != StoreScope.private.name }
        var table = TextTable(columns: ["type", "records"] + (hasShared ? ["store"] : []) + ["fields"], cutsLast: false)
        for line in lines {
            let fields = line.fields.map { "\($0.name) \($0.type)" }.joined(separator: ", ")
            try table.add([line.type, Wording.count(line.records)] + (hasShared ? [line.store] : []) + [fields])
        }
        try table.finish()
    }

    private func printJSON(_ reader: StoreReader, query: RecordQuery, schema: RecordTypeSchema) throws {
        let text = RecordText(schema: schema)
        var (array, damaged): (RecordArray, [String]) = (RecordArray(), [])
        try reader.forEachRecord(query, checksDigests: true) { record in
            if !record.isIntact { damaged.append(record.name) }
            try array.add { try text.write(record, to: &$0) }
        }
        try array.finish()
        try tell(damaged, of: query.type)
    }

    private func printTable(_ reader: StoreReader, query: RecordQuery, schema: RecordTypeSchema) throws {
        let text = RecordText(schema: schema)
        var table = TextTable(columns: [schema.nameField ?? "_name"] + schema.fields.map(\.name))
        var damaged: [String] = []
        try reader.forEachRecord(query, checksDigests: true) { record in
            if !record.isIntact { damaged.append(record.name) }
            try table.add([schema.shortName(of: record.name)] + (try text.plain(record, schema)))
        }
        try table.finish()
        try tell(damaged, of: query.type)
    }
}

extension RecordText {
    /// The values of a record as text for people, in the order of its type's fields.
    func plain(_ record: StoredRecord, _ schema: RecordTypeSchema) throws -> [String] {
        try zip(schema.fields, record.values).map { field, value in try Self.boolean(value, of: field) ?? plain(value) }
    }

    /// A value as text for people: strings have no quotes.
    func plain(_ value: FieldValue?) throws -> String {
        switch value {
        case nil: return ""
        case .string(let text), .reference(let text): return text
        case .timestamp(let time): return Timestamp.text(microseconds: time)
        case .bytes(let bytes): return Wording.bytes(bytes.count)
        case .asset(let id): return id
        case .some(let value):
            var out: [UInt8] = []
            try appendJSON(value, to: &out)
            return String(decoding: out, as: UTF8.self)
        }
    }
}
