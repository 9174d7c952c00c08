import ArgumentParser
import Tidemark

struct ShareStop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stop", abstract: "Stops sharing: ends a share of your own for all participants; the records stay here.",
        discussion: """
            Participants lose their copies with their next sync.

            Examples:
              tidemark share stop MyJournal.tidemark senja
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            let found = try await sharing.share(share)
            try await sharing.container.stopSharing(found, in: sharing.databases)
            try ShareOutcome.tell(
                "stopped sharing \"\(found.caption)\"; its records stay", sync: try await afterwards.run(sharing),
                json: json)
        }
    }
}

struct ShareLeave: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "leave", abstract: "Leaves another owner's share; its records are removed here, and stay with the owner.",
        discussion: """
            Edits that were not sent yet are stored; 'tidemark refused' shows them.

            Examples:
              tidemark share leave BensJournal.tidemark senja
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            let found = try await sharing.share(share)
            try await sharing.container.leave(found, in: sharing.databases)
            try ShareOutcome.tell(
                "left \"\(found.caption)\"; its records are gone here", sync: try await afterwards.run(sharing), json: json
            )
        }
    }
}
