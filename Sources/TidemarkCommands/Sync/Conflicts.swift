import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkStore
import TidemarkSync

struct Conflicts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the conflicts that were settled, and settles those that were left.",
        discussion: """
            Examples:
              tidemark conflicts MyJournal.tidemark
              tidemark conflicts list MyJournal.tidemark --json
              tidemark conflicts settle MyJournal.tidemark senja \\
                  --merge-policy mergeByPropertyStoreTrump
            """,
        subcommands: [ConflictsList.self, ConflictsSettle.self], defaultSubcommand: ConflictsList.self)

    static func text(_ conflict: LoggedConflict) -> String {
        guard let field = conflict.field else {
            return
                "\(conflict.type) \(conflict.record): deleted on one side, edited on the other; \(conflict.winner.rawValue) won (\(conflict.policy))"
        }
        func value(_ text: String?) -> String { text.map { $0.count > 60 ? "\($0.prefix(60))…" : $0 } ?? "none" }
        return
            "\(conflict.type) \(conflict.record) \(field): was \(value(conflict.ancestor)), here \(value(conflict.local)), there \(value(conflict.store)); \(conflict.winner.rawValue) won (\(conflict.policy))"
    }
}

struct ConflictsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows conflicts that were settled, newest first, and those that were left.",
        discussion: """
            Examples:
              tidemark conflicts list MyJournal.tidemark
              tidemark conflicts list MyJournal.tidemark --limit 5 --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(parsing: .unconditional, help: ArgumentHelp("So many.", valueName: "n"))
    var limit: Int = 20

    @Flag(help: "Prints a JSON object a line.")
    var json = false

    private struct Line: Encodable {
        let state, type, record: String
        var transaction: Int64?
        var field, ancestor, local, store, winner, policy: String?
    }

    func validate() throws { if limit < 0 { throw ValidationError("--limit takes a number from 0 on") } }

    func run() async throws {
        try await reportingErrors {
            let reader = try SyncReading(ContainerDirectory(openingAt: fileURL(container, "the container")))
            for kept in try reader.kept() where kept.reason == .conflict || kept.reason == .deletion {
                if json {
                    try Output.json(Line(state: "left", type: kept.type, record: kept.name))
                } else {
                    let what = kept.reason == .conflict ? "changed on both sides" : "edited here, deleted in the cloud"
                    try Output.line("left: \(kept.type) \(kept.name): \(what)")
                }
            }
            for conflict in try reader.conflicts(limit: limit) {
                if json {
                    try Output.json(
                        Line(
                            state: "settled", type: conflict.type, record: conflict.record, transaction: conflict.transaction,
                            field: conflict.field, ancestor: conflict.ancestor, local: conflict.local, store: conflict.store,
                            winner: conflict.winner.rawValue, policy: conflict.policy))
                } else {
                    try Output.line(Conflicts.text(conflict))
                }
            }
        }
    }
}

struct ConflictsSettle: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settle", abstract: "Settles conflicts that the merge policy 'error' has left.",
        discussion: """
            Examples:
              tidemark conflicts settle MyJournal.tidemark senja \\
                  --merge-policy mergeByPropertyObjectTrump
              tidemark conflicts settle MyJournal.tidemark --merge-policy latestEdit
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record's name. (default: all that were left)")
    var record: String?

    @Option(help: ArgumentHelp("How: \(NamedPolicy.allValueStrings.dropFirst().joined(separator: ", ")).", valueName: "policy"))
    var mergePolicy: NamedPolicy

    func validate() throws {
        if case .error = mergePolicy.policy { throw ValidationError("the policy 'error' settles nothing; name another one") }
    }

    func run() async throws {
        try await reportingErrors {
            let access = try await CloudAccess(ContainerDirectory(openingAt: fileURL(container, "the container")))
            let settled = try await access.sync().settleConflicts(of: record, policy: mergePolicy.policy)
            if settled.isEmpty, let record { throw StoreError(.notFound, "no conflict of the record '\(record)' was left") }
            for kept in settled { try Output.line("settled \(kept.type) \(kept.name)") }
            if !settled.isEmpty { try Output.line("the next sync sends the outcome") }
        }
    }
}
