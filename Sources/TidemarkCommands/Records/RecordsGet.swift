import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

struct RecordsGet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "get", abstract: "Shows one record.",
        discussion: """
            Examples:
              tidemark records get MyJournal.tidemark lofoten
              tidemark records get MyJournal.tidemark lofoten --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record's name, or TYPE/NAME.")
    var name: String

    @Option(help: "The record type, if the name alone is ambiguous.")
    var type: String?

    @Option(help: "The store: private or shared. (default: the store that has the record, private first)")
    var scope: StoreScope?

    @Flag(help: "Prints one JSON object, as an export does.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            guard let found = try FoundRecord(name, type: type, in: scope, of: directory) else {
                throw StoreError(.notFound, "there is no record '\(name)'" + (type.map { " of type \($0)" } ?? ""))
            }
            let (schema, record) = (found.schema, found.record)
            let text = RecordText(schema: schema)
            if json {
                var line: [UInt8] = []
                try text.appendJSON(record, to: &line)
                try Output.write(line + [0x0a])
                return try check(record, of: schema)
            }
            try Output.line("\(found.name.title), version \(record.version)")
            let texts = try text.plain(record, schema)
            for (index, field) in schema.fields.enumerated() where record.values[index] != nil {
                try Output.line("    \(field.name): \(texts[index])")
            }
            try check(record, of: schema)
        }
    }

    private func check(_ record: StoredRecord, of schema: RecordTypeSchema) throws {
        guard !record.isIntact else { return }
        throw ending(
            "\(RecordName(type: schema.name, name: record.name).title) is damaged: its values are not what was written; repair it with `tidemark verify --repair`",
            .dataError)
    }
}
