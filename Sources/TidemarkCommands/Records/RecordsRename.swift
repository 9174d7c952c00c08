import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct RecordsRename: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rename", abstract: "Gives a record another name; references to it follow.",
        discussion: """
            A name is unique in its container, has 1 to 255 bytes, and is stored in the normal form C of Unicode, which the cloud \
            requires. History and the cloud record a deletion and an insertion; 'tidemark undo' undoes both. If an import has added the \
            type as a prefix, the prefix stays: renaming Order:1 to 7 gives Order:7.

            Examples:
              tidemark records rename MyJournal.tidemark lofoten lofoten-2024
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record's name, or TYPE/NAME.")
    var old: String

    @Argument(help: "The new name.")
    var new: String

    @Option(help: "The record type, if the name alone is ambiguous.")
    var type: String?

    @Option(help: "The store: private or shared. (default: the store that has the record, private first)")
    var scope: StoreScope?

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let type, record, before: String
        let referring: [RecordName]
    }

    /// The new name. As in names from an import, the type stands before it if it stands before the old name.
    private func wholeName(_ found: FoundRecord) -> String {
        guard found.schema.shortName(of: found.record.name) != found.record.name, UUID(uuidString: new) == nil,
            RecordName(type: found.schema.name, name: new).shortName == new
        else { return new }
        return found.schema.qualifiedName(of: new)
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container)
            guard let found = try FoundRecord(old, type: type, in: scope, of: directory) else {
                throw StoreError(.notFound, "there is no record '\(old)'" + (type.map { " of type \($0)" } ?? ""))
            }
            let store = try RecordStore(
                container: directory, scope: found.scope, notifier: StoreChangeNotifier(container: directory, role: .tool))
            let outcome = try await store.rename(
                found.name, to: wholeName(found), author: TransactionAuthor("tidemark records rename", origin: .save))
            guard !json else {
                return try Output.json(
                    Report(
                        type: found.schema.name, record: outcome.name, before: found.record.name, referring: outcome.referring))
            }
            try Output.line(
                "\(found.name.title): renamed to \(RecordName(type: found.schema.name, name: outcome.name).shortName)")
            if !outcome.referring.isEmpty {
                try Output.line("the references of \(Wording.count(outcome.referring.count, "record")) name it so as well")
            }
        }
    }
}
