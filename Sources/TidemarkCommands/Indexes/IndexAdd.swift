import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct IndexAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Builds an index of fields of a record type.",
        discussion: """
            The order of the fields counts: an index of rating and createdAt serves conditions on rating, and on rating with createdAt.

            Examples:
              tidemark index add MyJournal.tidemark --type Destination rating createdAt
              tidemark index add MyJournal.tidemark --type Destination --full-text --language en caption details
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The fields, the most significant one first.")
    var fields: [String]

    @Option(help: "The record type.")
    var type: String

    @Flag(help: "Builds a full-text index: of the words of text fields.")
    var fullText = false

    @Option(help: ArgumentHelp("The language of the texts of a full-text index, such as en or de.", valueName: "tag"))
    var language: String?

    @Option(help: "The store: private or shared. (default: each store that has the type)")
    var scope: StoreScope?

    @Flag(help: "Prints one JSON array.")
    var json = false

    func validate() throws {
        guard !fields.isEmpty else { throw ValidationError("name the fields of the index") }
        guard language == nil || fullText else { throw ValidationError("--language needs --full-text") }
    }

    func run() async throws {
        try await reportingErrors {
            let stores = try IndexStores(containerToWrite(container), type: type, scope: scope)
            let index = FieldIndex(fullText ? .fullText : .values, fields, language: language)
            for scope in stores.scopes { try await stores.store(scope).addIndex(index, to: type) }
            let lines = stores.scopes.map { IndexLine(StoredIndex(index, origin: .command), type: type, scope: $0) }
            if json { try Output.json(lines) } else if let line = lines.first { try Output.line("added \(line.title)") }
        }
    }
}
