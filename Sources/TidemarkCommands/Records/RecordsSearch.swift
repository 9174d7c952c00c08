import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct RecordsSearch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "search", abstract: "Finds records by words in their texts, the best matches first.",
        discussion: """
            The type needs a full-text index: declared by a program or a schema file, or built with `tidemark index add --full-text`.

            A record matches if it has all words. "two words" in quotation marks are a phrase; fj* is the beginning of a word. Case and \
            diacritics make no difference.

            Examples:
              tidemark records search MyJournal.tidemark --type Destination fjord
              tidemark records search MyJournal.tidemark --type Destination '"blue hour" fj*' --limit 10 --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The words.")
    var words: [String]

    @Option(help: "The record type.")
    var type: String

    @Option(help: "The store: private or shared. (default: both)")
    var scope: StoreScope?

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of records.", valueName: "n"))
    var limit = 50

    @Flag(help: "Prints one JSON array.")
    var json = false

    private struct Line: Encodable {
        let record: RecordName
        let store: String
        let score: Double
        let excerpt: String
    }

    func validate() throws {
        guard !words.isEmpty else { throw ValidationError("name the words to search for") }
        guard limit >= 0 else { throw ValidationError("--limit takes a number from 0 on") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let stores = try IndexStores(directory, type: type, scope: scope)
            let wanted = SearchWords(words.joined(separator: " "))
            var lines: [Line] = []
            for scope in stores.scopes {
                let reader = try StoreReader(container: directory, scope: scope)
                for found in try reader.search(type, wanted, limit: limit, marks: (start: "[", end: "]")) {
                    lines.append(
                        Line(
                            record: RecordName(type: type, name: found.name), store: scope.name, score: found.score,
                            excerpt: found.excerpt))
                }
            }
            lines.sort { $0.score > $1.score }
            lines = Array(lines.prefix(limit))
            guard !json else { return try Output.json(lines) }
            guard !lines.isEmpty else { return try Output.line("no record matches") }
            var table = TextTable(columns: ["record", "text"], cutsLast: false)
            for line in lines { try table.add([line.record.shortName, line.excerpt]) }
            try table.finish()
        }
    }
}
