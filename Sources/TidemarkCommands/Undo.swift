import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

struct Undo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Undoes a transaction: removes its inserts and restores its updates and deletions.",
        discussion: """
            An undo is a transaction itself, and can be undone. If records were changed since, the command undoes nothing unless you \
            name a merge policy.

            --dry-run counts what would be undone. On a terminal the command asks before it undoes a transaction of more than 100 changes.

            Examples:
              tidemark undo MyJournal.tidemark                      (the last transaction)
              tidemark undo MyJournal.tidemark 42
              tidemark undo MyJournal.tidemark 42 --merge-policy mergeByPropertyStoreTrump
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(
        help: ArgumentHelp("The transaction, as 'tidemark history' shows it. (default: the last)", valueName: "transaction"))
    var transaction: Int64?

    @Option(name: .customLong("scope"), help: "The store: private or shared. (default: private)")
    var chosenScope: StoreScope?

    var scope: StoreScope { chosenScope ?? .private }

    @Flag(help: "Prints what would be undone, and undoes nothing.")
    var dryRun = false

    @OptionGroup var confirmation: Confirmation

    @Option(
        help: ArgumentHelp(
            """
            What becomes of fields and records that were changed since: error, mergeByPropertyStoreTrump (they stay), \
            mergeByPropertyObjectTrump (they are undone all the same), or another merge policy.
            """, valueName: "policy"))
    var mergePolicy: String = "error"

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        let dryRun: Bool
        let undone: Int64
        let transaction: Int64?
        let inserted, updated, deleted, conflicts: Int
    }

    func validate() throws {
        guard MergePolicy(name: mergePolicy) != nil else {
            throw ValidationError("there is no merge policy '\(mergePolicy)'; see --help")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun)
            let last = try StoreReader(container: directory, scope: scope).transactions(limit: 1).first?.id
            guard let undone = transaction ?? last else {
                throw StoreError(.notFound, "\(directory.url.path) has no history yet: there is nothing to undo")
            }
            if !dryRun {
                let known = try StoreReader(container: directory, scope: scope).transactions().first { $0.id == undone }
                let count = known.map { $0.inserted + $0.updated + $0.deleted } ?? 0
                try confirmation.ask("Undo \(Wording.count(count, "change")) of transaction \(undone)?", count: count)
            }
            let store = try RecordStore(
                container: directory, scope: scope, notifier: StoreChangeNotifier(container: directory, role: .tool))
            let outcome = try await store.undo(
                transaction: undone, author: "tidemark undo", policy: MergePolicy(name: mergePolicy) ?? .error, isDryRun: dryRun)
            let counts = outcome.counts
            if json {
                return try Output.json(
                    Report(
                        dryRun: dryRun, undone: undone, transaction: dryRun ? nil : outcome.transaction,
                        inserted: counts.inserted, updated: counts.updated,
                        deleted: counts.deleted, conflicts: outcome.conflicts.count))
            }
            guard !counts.isUnchanged else {
                return try Output.line("Nothing of transaction \(undone) was left to undo.")
            }
            try Output.line(
                """
                \(dryRun ? "Would undo" : "Undid") transaction \(undone): \(Wording.count(counts.inserted)) brought back, \(Wording.count(counts.updated)) changed \
                back, \(Wording.count(counts.deleted)) deleted\(outcome.conflicts.isEmpty
                    ? "" : "; \(Wording.count(outcome.conflicts.count, "conflict")) resolved").
                """)
        }
    }
}
