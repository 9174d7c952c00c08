import ArgumentParser
import Tidemark

struct ShareIt: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "share", abstract: "Shares a destination.")

    @OptionGroup var folder: Folder
    @Argument(help: "Its caption, or the beginning of its identifier.") var destination: String

    func run() async throws {
        let journal = try folder.journal
        let found = try await journal.destination(destination)
        try await journal.container.share(found, title: found.caption, in: journal.databases())
        print("shared '\(found.caption)'")
    }
}

struct Invite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Invites somebody, and prints the link to send them.")

    @OptionGroup var folder: Folder
    @Argument(help: "The destination.") var destination: String
    @Argument(help: "Their address.") var email: String
    @Flag(help: "They may only read.") var readOnly = false

    func run() async throws {
        let journal = try folder.journal
        let databases = try await journal.databases()
        let share = try await journal.share(of: journal.destination(destination))
        let now = try await journal.container.updateParticipants(
            of: share, [.invite(.emailAddress(email), role: .privateUser, permission: readOnly ? .readOnly : .readWrite)],
            in: databases)
        let link = try await journal.container.makeLink(to: now, for: now.participant(email).id, in: databases)
        print("journal://\(link.token)")
    }
}

struct Permit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Changes what a participant may do.")

    @OptionGroup var folder: Folder
    @Argument(help: "The destination.") var destination: String
    @Argument(help: "The participant's name or address.") var participant: String
    @Flag(help: "They may only read, rather than write.") var readOnly = false

    func run() async throws {
        let journal = try folder.journal
        let share = try await journal.share(of: journal.destination(destination))
        try await journal.container.updateParticipants(
            of: share, [.setPermission(participant: share.participant(participant).id, readOnly ? .readOnly : .readWrite)],
            in: journal.databases())
    }
}

struct Remove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Removes a participant.")

    @OptionGroup var folder: Folder
    @Argument(help: "The destination.") var destination: String
    @Argument(help: "The participant's name or address.") var participant: String

    func run() async throws {
        let journal = try folder.journal
        let share = try await journal.share(of: journal.destination(destination))
        try await journal.container.updateParticipants(
            of: share, [.remove(participant: share.participant(participant).id)], in: journal.databases())
    }
}

struct Accept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Accepts an invitation.")

    @OptionGroup var folder: Folder
    @Argument(help: "The link.") var link: String

    func run() async throws {
        let journal = try folder.journal
        let share = try await journal.container.acceptInvitation(link, in: journal.databases())
        print("accepted '\(share.title ?? "")' of \(share.owner?.identity.title ?? "Unknown")")
    }
}

struct Stop: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Ends one's own share; the destination stays.")

    @OptionGroup var folder: Folder
    @Argument(help: "The destination.") var destination: String

    func run() async throws {
        let journal = try folder.journal
        try await journal.container.stopSharing(
            journal.share(of: journal.destination(destination)), in: journal.databases())
    }
}

struct Leave: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Leaves somebody's share; the destination goes here, and stays there.")

    @OptionGroup var folder: Folder
    @Argument(help: "The destination.") var destination: String

    func run() async throws {
        let journal = try folder.journal
        try await journal.container.leave(journal.share(of: journal.destination(destination)), in: journal.databases())
    }
}
