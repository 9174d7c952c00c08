import ArgumentParser
import Tidemark
import TidemarkCloud

struct ShareSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes a participant's permission or role, or the share's title and access.",
        discussion: """
            The command makes all changes or none. --public with another permission than before withdraws the invitations that are not \
            accepted, and --public none removes participants who joined by an open link; the command names them.

            Examples:
              tidemark share set MyJournal.tidemark senja ben@example.org \\
                  --permission read-write
              tidemark share set MyJournal.tidemark senja "Cleo Frey" --role administrator
              tidemark share set MyJournal.tidemark senja --public read-only --title "Our Senja"
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @Argument(help: "The participant: a name, address, phone number or identifier.")
    var participant: String?

    @Option(help: "The participant's permission.")
    var permission: GivenPermission?

    @Option(help: "The participant's role.")
    var role: GivenRole?

    @Option(name: .customLong("public"), help: "The permission of everybody with a link.")
    var publicPermission: GivenPermission?

    @Option(help: "The title that people see; an empty one removes it.")
    var title: String?

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        guard permission != nil || role != nil || publicPermission != nil || title != nil else {
            throw ValidationError("say what to change: --permission or --role of a participant, --public, --title")
        }
        guard (participant != nil) == (permission != nil || role != nil) else {
            throw ValidationError("--permission and --role need a participant, and --public and --title have none")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            let found = try await sharing.share(share)
            var changes: [ShareChange] = []
            if let title { changes.append(.setTitle(title.isEmpty ? nil : title)) }
            if let publicPermission { changes.append(.setPublicPermission(publicPermission.permission)) }
            if let participant {
                let id = try found.participant(named: participant).id
                if let permission { changes.append(.setPermission(participant: id, permission.permission)) }
                if let role { changes.append(.setRole(participant: id, role.role)) }
            }
            // The participants that are stored here may be older than the cloud's.
            let before = publicPermission == nil ? [] : try await sharing.participants(of: found)
            let now = try await sharing.container.updateParticipants(of: found, changes, in: sharing.databases)
            let gone = before.filter { person in
                now.participants.first { $0.id == person.id }.map { $0.acceptanceStatus == .removed } ?? true
            }
            try ShareOutcome.tell(
                "changed \"\(now.caption)\"", share: now,
                withdrawn: gone.filter { $0.acceptanceStatus == .pending }.map(\.identity.title),
                removed: gone.filter { $0.acceptanceStatus == .accepted }.map(\.identity.title),
                sync: try await afterwards.run(sharing), json: json)
        }
    }
}

struct ShareRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes participants; they lose access at once.",
        discussion: """
            Records that they have written stay. A removed participant needs a new invitation to join again.

            Examples:
              tidemark share remove MyJournal.tidemark senja ben@example.org
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @Argument(help: ArgumentHelp("The participants: names, addresses, phone numbers or identifiers.", valueName: "participant"))
    var participants: [String]

    @OptionGroup var afterwards: SyncAfterwards

    @Flag(help: "Prints one JSON object.")
    var json = false

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            let found = try await sharing.share(share)
            let people = try participants.map { text throws(StoreError) in try found.participant(named: text) }
            let now = try await sharing.container.updateParticipants(
                of: found, people.map { .remove(participant: $0.id) }, in: sharing.databases)
            let names = people.map(\.identity.title).joined(separator: ", ")
            try ShareOutcome.tell(
                "removed \(names) from \"\(now.caption)\"", share: now, sync: try await afterwards.run(sharing),
                json: json)
        }
    }
}
