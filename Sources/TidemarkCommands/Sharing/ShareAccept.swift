import ArgumentParser
import Tidemark
import TidemarkHTTP

struct ShareAccept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "accept", abstract: "Accepts an invitation: what is shared comes into the shared store.",
        discussion: """
            Exit code 66 for a link that is none, was revoked, or is somebody else's: these are not told apart. 64 where a server's address \
            is given in its place.

            Examples:
              tidemark share accept BensJournal.tidemark tidemark://share/bPqv…
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The link, as it was sent.")
    var link: String

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            try sharing.checkIsLink(link)
            let share = try await sharing.container.acceptInvitation(link, in: sharing.databases)
            let permission = share.currentUser?.permission.title ?? ShareParticipant.Permission.unknown.title
            let owner = share.owner?.identity.title ?? "Unknown"
            try ShareOutcome.tell(
                "accepted \"\(share.caption)\" of \(owner): \(permission)", share: share,
                sync: try await afterwards.run(sharing.access), json: json)
        }
    }
}

struct ShareDecline: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "decline", abstract: "Declines an invitation.",
        discussion: """
            Who has declined needs another invitation to take part after all.

            Examples:
              tidemark share decline BensJournal.tidemark tidemark://share/bPqv…
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The link, as it was sent.")
    var link: String

    @Flag(help: "Prints JSON.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            try sharing.checkIsLink(link)
            try await sharing.container.declineInvitation(link, in: sharing.databases)
            try ShareOutcome.tell("declined", json: json)
        }
    }
}

extension SharingAccess {
    /// Makes sure that what was given as a link is not the address of a server.
    fileprivate func checkIsLink(_ link: String) throws {
        guard let server = try? ServerAddress(link, allowsInsecure: true),
            server.path.isEmpty || server.description == access.settings.cloud
        else { return }
        throw ending(
            """
            \(server) is a server's address, and not a link to a share: that is as tidemark://share/…, and who shares makes one with \
            'tidemark share invite'. A server is named with 'tidemark account sign-in --server'
            """, .usage)
    }
}
