import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct IndexDrop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Drops an index of a record type.",
        discussion: """
            Records and their values stay. A program that declares the index builds it again with its next save.

            Examples:
              tidemark index drop MyJournal.tidemark --type Destination rating createdAt
              tidemark index drop MyJournal.tidemark --type Destination --full-text caption details
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The fields of the index, in its order.")
    var fields: [String]

    @Option(help: "The record type.")
    var type: String

    @Flag(help: "Drops the full-text index of these fields.")
    var fullText = false

    @Option(help: "The store: private or shared. (default: each store that has the type)")
    var scope: StoreScope?

    @Flag(help: "Prints one JSON array.")
    var json = false

    func validate() throws {
        guard !fields.isEmpty else { throw ValidationError("name the fields of the index") }
    }

    func run() async throws {
        try await reportingErrors {
            let stores = try IndexStores(containerToWrite(container), type: type, scope: scope)
            let name = FieldIndex(fullText ? .fullText : .values, fields).name
            var lines: [IndexLine] = []
            for scope in stores.scopes {
                let known = try StoreReader(container: stores.directory, scope: scope).indexes()
                let isThere = known.contains { $0.type == type && $0.indexes.contains { $0.index.name == name } }
                // If no store has the index, the last store's error reports it.
                guard isThere || lines.isEmpty && scope == stores.scopes.last else { continue }
                let dropped = try await stores.store(scope).dropIndex(named: name, of: type)
                lines.append(IndexLine(dropped, type: type, scope: scope))
            }
            if json { return try Output.json(lines) }
            for line in lines {
                try Output.line("dropped \(line.title)")
                if line.declaredBy == StoredIndex.Origin.program.rawValue {
                    Output.error("note: a program declared it, and builds it again with its next save")
                }
            }
        }
    }
}
