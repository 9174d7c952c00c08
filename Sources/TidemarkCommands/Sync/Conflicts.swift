import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Conflicts: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows resolved conflicts, and resolves open ones.",
        discussion: """
            Examples:
              tidemark conflicts MyJournal.tidemark
              tidemark conflicts list MyJournal.tidemark --json
              tidemark conflicts resolve MyJournal.tidemark senja \\
                  --merge-policy mergeByPropertyStoreTrump
            """,
        subcommands: [ConflictsList.self, ConflictsResolve.self], defaultSubcommand: ConflictsList.self)

    static func text(_ conflict: LoggedConflict, _ known: KnownFields) -> String {
        let title = RecordName(type: conflict.type, name: conflict.record).title
        if let other = conflict.replacement {
            return
                "\(title): has become one with \(RecordName(type: conflict.type, name: other).shortName), which has the same unique key"
        }
        let rule = DeleteRule(rawValue: conflict.policy)
        guard let field = conflict.field else {
            return rule == .deny
                ? "\(title): deleted on one side, and kept, because others refer to it (deny)"
                : "\(title): deleted on one side, edited on the other; \(conflict.winner.rawValue) won (\(conflict.policy))"
        }
        func value(_ json: String?) -> String {
            ConflictValue(json, of: known[conflict.type, field]).map { $0.text.count > 60 ? "\($0.text.prefix(60))…" : $0.text }
                ?? "none"
        }
        switch rule {
        case .cascade: return "\(title): deleted, because its \(field), \(value(conflict.local)), is deleted (cascade)"
        case .nullify: return "\(title) \(field): lost \(value(conflict.local)), which is deleted (nullify)"
        case .deny, nil: break
        }
        return
            "\(title) \(field): was \(value(conflict.ancestor)), here \(value(conflict.local)), there \(value(conflict.store)); \(conflict.winner.rawValue) won (\(conflict.policy))"
    }
}

struct ConflictsList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows resolved conflicts, newest first, and open ones.",
        discussion: """
            Examples:
              tidemark conflicts list MyJournal.tidemark
              tidemark conflicts list MyJournal.tidemark --limit 5 --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of conflicts.", valueName: "n"))
    var limit: Int = 20

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    private struct Line: Encodable {
        let state, type, record: String
        var transaction: Int64?
        var field: String?
        var ancestor, local, store: ConflictValue?
        var winner, policy: String?
    }

    func validate() throws { if limit < 0 { throw ValidationError("--limit takes a number from 0 on") } }

    func run() async throws {
        try await reportingErrors {
            let reader = try SyncReading(ContainerDirectory(openingAt: fileURL(container, "the container")))
            for record in try reader.deferredRecords() where record.reason == .conflict || record.reason == .deletion {
                if json {
                    try Output.json(Line(state: "left", type: record.type, record: record.name))
                } else {
                    let what = record.reason == .conflict ? "changed on both sides" : "edited here, deleted in the cloud"
                    try Output.line("left: \(RecordName(type: record.type, name: record.name).title): \(what)")
                }
            }
            let (conflicts, known) = (try reader.conflicts(limit: limit), try reader.knownFields())
            for conflict in conflicts {
                let field = known[conflict.type, conflict.field]
                if json {
                    try Output.json(
                        Line(
                            state: "resolved", type: conflict.type, record: conflict.record, transaction: conflict.transaction,
                            field: conflict.field, ancestor: ConflictValue(conflict.ancestor, of: field),
                            local: ConflictValue(conflict.local, of: field), store: ConflictValue(conflict.store, of: field),
                            winner: conflict.winner.rawValue, policy: conflict.policy))
                } else {
                    try Output.line(Conflicts.text(conflict, known))
                }
            }
        }
    }
}

struct ConflictsResolve: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve", abstract: "Resolves conflicts that the merge policy 'error' has left open.",
        discussion: """
            Examples:
              tidemark conflicts resolve MyJournal.tidemark senja \\
                  --merge-policy mergeByPropertyObjectTrump
              tidemark conflicts resolve MyJournal.tidemark --merge-policy latestEdit
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The record's name. (default: all open conflicts)")
    var record: String?

    @Option(help: ArgumentHelp("How: \(NamedPolicy.allValueStrings.dropFirst().joined(separator: ", ")).", valueName: "policy"))
    var mergePolicy: NamedPolicy

    @OptionGroup var outcome: Outcome

    func validate() throws {
        if case .error = mergePolicy.policy { throw ValidationError("the policy 'error' resolves nothing; name another one") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container)
            let access = try await CloudAccess(directory)
            let name = try record.map { try wholeName($0, in: directory) }
            let resolved = try await access.sync().resolveConflicts(of: name, policy: mergePolicy.policy)
            if resolved.isEmpty, let record { throw StoreError(.notFound, "no conflict of the record '\(record)' was left") }
            guard !outcome.json else {
                let names = resolved.map { RecordName(type: $0.type, name: $0.name) }
                return try outcome.tell("conflicts resolve", ["policy": mergePolicy.policy.name, "resolved": names])
            }
            for conflict in resolved { try Output.line("resolved \(RecordName(type: conflict.type, name: conflict.name).title)") }
            if !resolved.isEmpty { try Output.line("the next sync sends the outcome") }
        }
    }

    /// The name of the record with a conflict that a text names; the text itself if there is no such record.
    private func wholeName(_ text: String, in directory: ContainerDirectory) throws -> String {
        let left = try SyncReading(directory).deferredRecords().filter { $0.reason == .conflict || $0.reason == .deletion }
        let meant = Set(left.map { RecordName(type: $0.type, name: $0.name) }.filter { $0.isMeant(by: text) })
        if meant.contains(where: { $0.name == text }) { return text }
        guard meant.count < 2 else {
            let names = meant.map { "\($0.type)/\($0.shortName)" }.sorted().joined(separator: " or ")
            throw StoreError(.invalid, "'\(text)' stands for several records; give \(names)")
        }
        return meant.first?.name ?? text
    }
}
