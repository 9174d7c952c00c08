import ArgumentParser
import Tidemark
import TidemarkCloud

struct ShareInvite: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "invite", abstract: "Invites people, and prints the links to send them.",
        discussion: """
            An existing participant gets the given permission and role. A personal link is valid for one person until 'tidemark share \
            link --revoke' revokes it; an open link is valid for every invited participant, and for everybody if the share is public. A \
            note names addresses without a discoverable account.

            Examples:
              tidemark share invite MyJournal.tidemark senja ben@example.org
              tidemark share invite MyJournal.tidemark senja ben@example.org +4712345678 --read-only
              tidemark share invite MyJournal.tidemark senja cleo@example.org --administrator
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @Argument(help: ArgumentHelp("Their addresses, phone numbers or user record names.", valueName: "person"))
    var people: [String]

    @Flag(help: "Gives them read-only permission.")
    var readOnly = false

    @Flag(help: "Gives them read-write permission. (default)")
    var readWrite = false

    @Flag(help: "Makes them administrators, who may invite, change and remove participants.")
    var administrator = false

    @Flag(help: "Prints one link that is not limited to a person.")
    var openLink = false

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        if readOnly, readWrite { throw ValidationError("--read-only and --read-write exclude each other") }
    }

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            let lookUps = try people.map { text throws(StoreError) in try UserLookUp(argument: text) }
            let before = try await sharing.share(share)
            let permission: ShareParticipant.Permission = readOnly ? .readOnly : .readWrite
            let role: ShareParticipant.Role = administrator ? .administrator : .privateUser
            let now = try await sharing.container.updateParticipants(
                of: before, lookUps.map { .invite($0, role: role, permission: permission) }, in: sharing.databases)
            var links: [LinkLine] = []
            // A person who takes part under another address already needs no link.
            for limit in openLink
                ? [nil]
                : lookUps.compactMap({ lookUp in
                    now.participants.first { $0.identity.lookUp?.normalized == lookUp }?.id
                })
            {
                links.append(
                    LinkLine(
                        try await sharing.container.makeLink(to: now, for: limit, in: sharing.databases), of: now,
                        sharing.access))
            }
            let missing = await undiscovered(lookUps, in: sharing.databases)
            let what = "invited \(people.joined(separator: ", ")) to \"\(now.caption)\": "
            try ShareOutcome.tell(
                what + "\(role.title), \(permission.title)", share: now, links: links, undiscovered: missing, json: json)
        }
    }
}

extension ShareInvite {
    /// The addresses for which the cloud finds no account. Empty if the cloud can't be asked now, because the invitation stands.
    private func undiscovered(_ lookUps: [UserLookUp], in databases: CloudDatabases) async -> [String] {
        do throws(CloudError) {
            let found = try await databases.private.users(matching: lookUps).compactMap { $0.lookUp?.normalized }
            return lookUps.filter { !found.contains($0.normalized ?? $0) }.map(\.value)
        } catch {
            return []
        }
    }
}

struct ShareLinks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "link", abstract: "Creates, lists or revokes links to a share.",
        discussion: """
            The command prints a link only once, because the cloud stores a digest of the link. Participants stay when a link is \
            revoked.

            Examples:
              tidemark share link MyJournal.tidemark senja --for ben@example.org
              tidemark share link MyJournal.tidemark senja
              tidemark share link MyJournal.tidemark senja --list
              tidemark share link MyJournal.tidemark senja --revoke 6f0c9a1e
            """)

    @Argument(help: "The container.")
    var container: String

    @Argument(help: "The share: one of its records, its zone, number or title.")
    var share: String

    @Option(name: .customLong("for"), help: ArgumentHelp("The participant for whom the link is valid.", valueName: "participant"))
    var participant: String?

    @Flag(help: "Lists the share's links: identifiers, participants and dates.")
    var list = false

    @Option(help: ArgumentHelp("Revokes the link with this identifier, or prefix of one.", valueName: "identifier"))
    var revoke: String?

    @Flag(help: "Prints one JSON object.")
    var json = false

    func validate() throws {
        if [participant != nil, revoke != nil, list].count(where: { $0 }) > 1 {
            throw ValidationError("--for, --list and --revoke exclude each other")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let sharing = try await SharingAccess.open(container)
            let found = try await sharing.share(share)
            if list || revoke != nil {
                let links = try await sharing.container.links(to: found, in: sharing.databases)
                guard let revoke else { return try show(links.map { LinkEntryLine($0, of: found) }) }
                let meant = links.filter { $0.id.hasPrefix(revoke.lowercased()) }
                guard let link = meant.first, meant.count == 1, !revoke.isEmpty else {
                    throw StoreError(
                        meant.count > 1 ? .invalid : .notFound,
                        "\(meant.isEmpty ? "no link" : "more than one link") begins with '\(revoke)'; --list shows them")
                }
                try await sharing.container.revokeLink(link.id, to: found, in: sharing.databases)
                return try ShareOutcome.tell("revoked the link \(link.id)", share: found, json: json)
            }
            let limit = try participant.map { text throws(StoreError) in try found.participant(named: text).id }
            let link = LinkLine(
                try await sharing.container.makeLink(to: found, for: limit, in: sharing.databases), of: found,
                sharing.access)
            if json { return try Output.json(ShareOutcome(share: ShareLine(found), links: [link])) }
            try link.tell()
        }
    }

    private func show(_ links: [LinkEntryLine]) throws {
        if json { return try Output.json(["links": links]) }
        var table = TextTable(columns: ["identifier", "made", "for"])
        for link in links { try table.add([link.identifier, link.made, link.participant ?? "every invited participant"]) }
        try table.finish()
    }
}
