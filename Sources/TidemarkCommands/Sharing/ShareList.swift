import ArgumentParser
import Foundation
import Tidemark
import TidemarkSQLite
import TidemarkStore

struct ShareList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the shares of a container, your own first.",
        discussion: """
            The list is as of the last sync. The numbers change as shares are added and removed.

            Examples:
              tidemark share list MyJournal.tidemark
              tidemark share list MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Prints one JSON object per line.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let shares = try KnownShares(directory).all
            if json {
                for share in shares { try Output.json(ShareLine(share)) }
                return
            }
            guard !shares.isEmpty else { return try Output.line("nothing is shared") }
            var table = TextTable(columns: ["", "title", "owner", "role", "permission", "participants", "store", "zone"])
            for (index, share) in shares.enumerated() {
                let line = ShareLine(share)
                let count = share.participants.count { $0.acceptanceStatus == .accepted }
                let invited = share.participants.count { $0.acceptanceStatus == .pending }
                try table.add([
                    "\(index + 1)", share.caption, line.owner ?? "Unknown", line.role, line.permission,
                    Wording.count(count) + (invited > 0 ? ", \(Wording.count(invited)) invited" : ""), line.store, line.zone,
                ])
            }
            try table.finish()
        }
    }
}

struct ShareShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows a share: its participants and their permissions.",
        discussion: """
            The share is shown as of the last sync.

            Examples:
              tidemark share show MyJournal.tidemark senja
              tidemark share show MyJournal.tidemark senja --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let found = try await KnownShares(directory).share(named: share)
            let line = ShareLine(found)
            if json { return try Output.json(line) }
            try Output.line(found.caption)
            try Output.line("    you:    \(line.role), \(line.permission)")
            try Output.line("    public: \(line.publicPermission)")
            try Output.line("    store:  \(line.store), zone \(line.zone)")
            try Output.line("")
            var table = TextTable(columns: ["name", "status", "role", "permission"])
            for participant in line.participants {
                try table.add([
                    participant.name + (participant.isCurrentUser ? " (you)" : ""), participant.status, participant.role,
                    participant.permission,
                ])
            }
            try table.finish()
        }
    }
}
