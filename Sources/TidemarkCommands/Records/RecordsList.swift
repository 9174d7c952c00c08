import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkStore
import TidemarkTransfer

struct RecordsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows records; what 'records' does without a subcommand.",
        discussion: """
            The condition is SQL over the type's fields, _name and the bookkeeping columns; times are microseconds since 1970.

            Examples:
              tidemark records MyJournal.tidemark --type Destination --sort createdAt \\
                  --descending --limit 10
              tidemark records MyJournal.tidemark --type Destination \\
                  --where "rating >= 4 AND caption LIKE '%Iceland%'" --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type.")
    var type: String

    @Option(name: .customLong("where"), help: ArgumentHelp("Only records for which this holds.", valueName: "SQL-expression"))
    var condition: String?

    @Option(help: ArgumentHelp("The field to sort by. (default: as they came)", valueName: "field"))
    var sort: String?

    @Option(help: "The store: private or shared.")
    var scope: DatabaseScope = .private

    @Flag(help: "Sorts from the last to the first.")
    var descending = false

    @Option(parsing: .unconditional, help: ArgumentHelp("At most so many.", valueName: "n"))
    var limit: Int?

    @Flag(help: "Prints a JSON array, a record a line.")
    var json = false

    func validate() throws {
        if let limit, limit < 0 { throw ValidationError("--limit takes a number from 0 on") }
    }

    func run() async throws {
        try await reportingErrors {
            let reader = try StoreReader(
                container: ContainerDirectory(openingAt: fileURL(container, "the container")), scope: scope)
            let schema = try reader.type(named: type)
            let query = RecordQuery(type: type, condition: condition, sortField: sort, isDescending: descending, limit: limit)
            if json {
                try printJSON(reader, query: query, schema: schema)
            } else {
                try printTable(reader, query: query, schema: schema)
            }
        }
    }

    /// Says on standard error which of the records shown are damaged.
    private func tell(_ damaged: [String]) throws {
        guard !damaged.isEmpty else { return }
        for name in damaged.prefix(10) {
            Output.error("tidemark: \(type) \(name) is damaged: its values are not what was written")
        }
        throw ending(
            "\(Wording.count(damaged.count, "record")) shown above damaged; repair with `tidemark verify --repair`", .dataError)
    }

    private func printJSON(_ reader: StoreReader, query: RecordQuery, schema: RecordTypeSchema) throws {
        let text = RecordText(schema: schema)
        var buffer: [UInt8] = [UInt8(ascii: "[")]
        var (isFirst, damaged): (Bool, [String]) = (true, [])
        try reader.forEachRecord(query, checksDigests: true) { record in
            if !record.isIntact { damaged.append(record.name) }
            buffer += isFirst ? [0x0a] : [UInt8(ascii: ","), 0x0a]
            isFirst = false
            try text.appendJSON(record, to: &buffer)
            if buffer.count > 1 << 18 {
                try Output.write(buffer)
                buffer.removeAll(keepingCapacity: true)
            }
        }
        try Output.write(buffer + [0x0a, UInt8(ascii: "]"), 0x0a])
        try tell(damaged)
    }

    private func printTable(_ reader: StoreReader, query: RecordQuery, schema: RecordTypeSchema) throws {
        let text = RecordText(schema: schema)
        var table = TextTable(columns: [schema.nameField ?? "_name"] + schema.fields.map(\.name))
        var damaged: [String] = []
        try reader.forEachRecord(query, checksDigests: true) { record in
            if !record.isIntact { damaged.append(record.name) }
            try table.add([schema.shortName(of: record.name)] + (try record.values.map { try text.plain($0) }))
        }
        try table.finish()
        try tell(damaged)
    }
}

extension RecordText {
    /// A value for people: strings without quotes.
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
