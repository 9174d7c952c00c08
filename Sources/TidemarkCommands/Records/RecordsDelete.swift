import ArgumentParser
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct RecordsDelete: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete", abstract: "Deletes records; history keeps their values.",
        discussion: """
            The command names missing records at the end (exit code 66), and deletes the others. If you lack the permission to delete \
            one of the records, it deletes nothing (exit code 77).

            Records that belong to a deleted record go with it, as the delete rules of their types say. --dry-run prints which records would be \
            deleted. On a terminal the command asks before --where deletes more than 100 records.

            Examples:
              tidemark records delete MyJournal.tidemark lofoten senja
              tidemark records delete MyJournal.tidemark --type Destination --where "rating < 2"
              tidemark undo MyJournal.tidemark              (brings them back)
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The records' names.")
    var names: [String] = []

    @Option(help: "The record type for --where.")
    var type: String?

    @Option(
        name: .customLong("where"), help: ArgumentHelp("Deletes records that match this condition.", valueName: "SQL-expression"))
    var condition: String?

    @Option(help: "The store: private or shared. (default: the store that has the record; with --where, private)")
    var scope: StoreScope?

    @Flag(help: "Prints what would be deleted, and deletes nothing.")
    var dryRun = false

    @OptionGroup var confirmation: Confirmation

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let dryRun: Bool
        let deleted, cascaded: [RecordName]
        let missing: [String]
    }

    func validate() throws {
        guard names.isEmpty != (condition == nil) else {
            throw ValidationError("name the records to delete, or find them with --type and --where")
        }
        guard condition == nil || type != nil else { throw ValidationError("--where needs --type") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun)
            let author = TransactionAuthor("tidemark records delete", origin: .save)
            var deleted: [RecordName] = []
            var missing: [String] = []
            var cascaded: [RecordName] = []
            if let condition, let type {
                let query = RecordQuery(type: type, condition: condition)
                var matching: [String] = []
                try StoreReader(container: directory, scope: scope ?? .private).forEachRecord(query) { matching.append($0.name) }
                if !dryRun {
                    try confirmation.ask("Delete \(Wording.count(matching.count, "record")) of \(type)?", count: matching.count)
                }
                (matching, cascaded) = try await store(directory, scope ?? .private).deletion(
                    matching: query, author: author, isDryRun: dryRun)
                deleted = matching.map { RecordName(type: type, name: $0) }
            } else {
                var found: [FoundRecord] = []
                for name in names {
                    if let record = try FoundRecord(name, type: type, in: scope, of: directory) {
                        found.append(record)
                    } else {
                        missing.append(name)
                    }
                }
                deleted = found.map(\.name)
                // The shared store comes first, because its deletions may be refused: then nothing is deleted.
                for scope in ContainerDirectory.scopes.reversed() {
                    let records = found.filter { $0.scope == scope }.map(\.name)
                    guard !records.isEmpty else { continue }
                    cascaded += try await store(directory, scope).deletion(of: records, author: author, isDryRun: dryRun)
                }
            }
            if json {
                try Output.json(Report(dryRun: dryRun, deleted: deleted, cascaded: cascaded, missing: missing))
            } else {
                let done = dryRun ? "would be deleted:" : "deleted"
                for record in deleted { try Output.line("\(done) \(record.title)") }
                for record in cascaded { try Output.line("\(done) \(record.title), which belongs to a deleted record") }
                if dryRun {
                    try Output.line("would be deleted in all: \(Wording.count(deleted.count + cascaded.count, "record"))")
                } else if deleted.isEmpty, let type, condition != nil {
                    try Output.line("no record of \(type) matches: nothing was deleted")
                }
            }
            if let first = missing.first {
                let others = missing.count > 1 ? " and \(missing.count - 1) more" : ""
                throw StoreError(.notFound, "there is no record '\(first)'\(others)")
            }
        }
    }

    private func store(_ directory: ContainerDirectory, _ scope: StoreScope) throws -> RecordStore {
        try RecordStore(container: directory, scope: scope, notifier: StoreChangeNotifier(container: directory, role: .tool))
    }
}
