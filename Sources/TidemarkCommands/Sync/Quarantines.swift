import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Quarantines: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine", abstract: "Shows, restores and discards records that were set aside.",
        discussion: """
            Records are set aside when their account signs out or another account signs in, so that nothing is lost and no other account \
            gets them. They are in a container of their own, which the other commands can read.

            Examples:
              tidemark quarantine list MyJournal.tidemark
              tidemark quarantine restore MyJournal.tidemark 3f2a
              tidemark quarantine discard MyJournal.tidemark 3f2a
            """,
        subcommands: [QuarantineList.self, QuarantineRestore.self, QuarantineDiscard.self])
}

struct QuarantineList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the records that were set aside.",
        discussion: """
            Examples:
              tidemark quarantine list MyJournal.tidemark
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    private struct Line: Encodable {
        let identifier, time, reason, path: String
        let user: String?
        let records, pending: Int
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            for it in try directory.quarantines() {
                let id = it.id.uuidString.lowercased()
                let time = Timestamp.text(microseconds: it.time)
                if json {
                    try Output.json(
                        Line(
                            identifier: id, time: time, reason: it.reason, path: it.url(in: directory).path, user: it.user,
                            records: it.records,
                            pending: it.pending))
                } else {
                    try Output.line(
                        "\(id)  \(time)  \(Wording.count(it.records, "record")), \(Wording.count(it.pending, "change")) not in the cloud: \(it.reason)"
                    )
                }
            }
        }
    }
}

struct QuarantineRestore: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Restores records that were set aside.",
        discussion: """
            The command merges edits that the cloud did not have with the present records; all else is fetched from the cloud. The same \
            account has to be signed in, unless you pass --into-another-account.

            Examples:
              tidemark quarantine restore MyJournal.tidemark 3f2a
              tidemark quarantine restore MyJournal.tidemark 3f2a --all --into-another-account
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The identifier, or its beginning.")
    var identifier: String

    @Flag(help: "Also restores records that the cloud had, if they are missing.")
    var all = false

    @Flag(help: "Also if another account, or no account, is signed in.")
    var intoAnotherAccount = false

    @Flag(help: "Keeps the set-aside records.")
    var keep = false

    @OptionGroup var outcome: Outcome

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let quarantine = try directory.quarantine(identifier)
            let store = try RecordStore(
                container: directory, scope: quarantine.scope, notifier: StoreChangeNotifier(container: directory, role: .tool))
            var options: QuarantineRestoration = []
            if all { options.insert(.withRecordsOfTheCloud) }
            if intoAnotherAccount { options.insert(.intoAnotherAccount) }
            if keep { options.insert(.keepingQuarantine) }
            let counts: ChangeCounts
            do {
                counts = try await store.restore(
                    quarantine, options: options, author: "tidemark quarantine restore",
                    policy: { _ in .mergeByPropertyObjectTrump }
                ).counts
            } catch let error as StoreError where error.code == .anotherAccount {
                throw StoreError(error.code, "\(error.message) with --into-another-account")
            }
            let isKept = try directory.quarantines().contains { $0.id == quarantine.id }
            try outcome.tell(
                "quarantine restore",
                [
                    "identifier": quarantine.id.uuidString.lowercased(), "inserted": counts.inserted, "updated": counts.updated,
                    "deleted": counts.deleted, "unchanged": counts.unchanged, "isKept": isKept,
                ],
                text:
                    "restored: \(counts.inserted) inserted, \(counts.updated) updated, \(counts.deleted) deleted, \(counts.unchanged) unchanged"
            )
            if !keep, isKept {
                Output.error(
                    "note: only what no cloud had was restored. The other records stay set aside, for this account's cloud does not have "
                        + "them; --all restores them, too")
            }
        }
    }
}

struct QuarantineDiscard: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "discard", abstract: "Removes records that were set aside, permanently.",
        discussion: """
            Examples:
              tidemark quarantine discard MyJournal.tidemark 3f2a
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The identifier, or its beginning.")
    var identifier: String

    @OptionGroup var outcome: Outcome

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let quarantine = try directory.quarantine(identifier)
            try directory.discard(quarantine)
            try outcome.tell(
                "quarantine discard",
                [
                    "identifier": quarantine.id.uuidString.lowercased(), "records": quarantine.records,
                    "pending": quarantine.pending,
                ],
                text: "discarded \(Wording.count(quarantine.records, "record"))")
        }
    }
}
