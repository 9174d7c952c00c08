import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct SchemaDrop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Removes a field, a unique key, or a record type with its records.",
        discussion: """
            History keeps the values of a field: 'tidemark history --record' shows them. To have them back, add the field again with the same \
            type ('tidemark schema apply'), then undo the transaction ('tidemark undo'). The cloud and other devices keep the field.

            A type goes with its records and their history, which can't be undone. It is refused while a cloud has records of the type: \
            delete these first ('tidemark records delete'), and synchronise.

            On a terminal the command asks before values go.

            Examples:
              tidemark schema drop MyJournal.tidemark --type Destination rating --dry-run
              tidemark schema drop MyJournal.tidemark --type Destination rating
              tidemark schema drop MyJournal.tidemark --type Destination --unique-key caption,createdAt
              tidemark schema drop MyJournal.tidemark --type Draft --yes
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: "The record type.")
    var type: String

    @Argument(help: "The field; without it, and without --unique-key, the type goes.")
    var field: String?

    @Option(help: ArgumentHelp("The fields of a unique key, which goes.", valueName: "field,…"))
    var uniqueKey: String?

    @OptionGroup var changing: SchemaChanging

    func validate() throws {
        if field != nil, uniqueKey != nil { throw ValidationError("name a field or a --unique-key, not both") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: changing.dryRun)
            let known = KnownSchema(try StoreReader(container: directory).types())
            let schema = try known.type(named: type)
            var change = SchemaChange.dropType(type)
            if let field {
                try known.check(field: field, of: schema)
                change = .dropField(field, of: type)
            }
            if let uniqueKey {
                let key = uniqueKey.split(separator: ",").map(String.init)
                guard schema.uniqueKeys.contains(key) else {
                    let keys = schema.uniqueKeys.map { $0.joined(separator: ",") }
                    let known = keys.isEmpty ? "it has none" : "it has \(keys.joined(separator: " and "))"
                    throw StoreError(.schema, "\(type) has no unique key \(uniqueKey); \(known)")
                }
                change = .dropUniqueKey(key, of: type)
            }
            try await changing.make([change], in: directory, command: "schema drop") { lost in
                let records = Wording.count(lost, "record")
                return field.map { "Drop \($0) of \(type), which \(records) have? History keeps the values." }
                    ?? "Drop \(type) with \(records) and their history, for good?"
            }
        }
    }
}
