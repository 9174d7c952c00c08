import ArgumentParser
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

struct AdminZones: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "zones", abstract: "Shows the zones of a database, with the numbers of their records.",
        discussion: """
            Examples:
              tidemark admin zones --container journal --data ~/cloud
              tidemark admin zones --container journal --account anna@example.org --data ~/cloud
            """)

    @OptionGroup var zone: AdminPlace

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let zone: String
        let owner: String?
        let records, shares: Int
        let types: [String: Int]
    }

    func run() async throws {
        try await reportingErrors {
            let lines = try await listing.place.administration().zones(in: zone.place).map {
                Line(
                    zone: $0.zone.zoneName, owner: $0.zone.ownerName == CloudZoneID.defaultOwner ? nil : $0.zone.ownerName,
                    records: $0.total, shares: $0.shares, types: $0.records)
            }
            try listing.show(lines, columns: ["zone", "records", "shares", "types", "owner"], none: "there is no zone") { line in
                [
                    line.zone, Wording.count(line.records), Wording.count(line.shares),
                    line.types.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", "),
                    line.owner ?? "",
                ]
            }
        }
    }
}

struct AdminShares: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "shares", abstract: "Shows the shares of a database, or of a zone, with their participants.",
        discussion: """
            Without --zone the command shows the shares of all zones of the database.

            Examples:
              tidemark admin shares --container journal --account anna@example.org --data ~/cloud
              tidemark admin shares --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
            """)

    @OptionGroup var zone: AdminPlace

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let share, zone: String
        let owner, root, title: String?
        let publicPermission, participant: String
        let name: String?
        let role, permission, status: String
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            let shares =
                if zone.zoneName == nil {
                    try await administration.sharesOfAllZones(in: zone.place)
                } else {
                    try await administration.shares(in: zone.place)
                }
            var lines: [Line] = []
            for share in shares {
                let owner = share.id.zone.ownerName
                let root: String? = if case .hierarchy(let root) = share.coverage { root } else { nil }
                for participant in share.participants {
                    lines.append(
                        Line(
                            share: share.id.recordName, zone: share.id.zone.zoneName,
                            // A private database belongs to its account alone, so the owner is left out.
                            owner: zone.place.scope == .private || owner == CloudZoneID.defaultOwner ? nil : owner, root: root,
                            title: share.title,
                            publicPermission: share.publicPermission.title, participant: participant.id,
                            name: participant.identity.title, role: participant.role.title,
                            permission: participant.permission.title,
                            status: participant.acceptanceStatus.title))
                }
            }
            try listing.show(
                lines, columns: ["share", "of", "title", "everybody", "participant", "role", "permission", "status", "zone"],
                cutsLast: false, none: "nothing is shared there"
            ) { line in
                [
                    line.share, line.root ?? "the zone", line.title ?? "", line.publicPermission, line.name ?? line.participant,
                    line.role, line.permission, line.status, line.zone + (line.owner.map { " of \($0)" } ?? ""),
                ]
            }
        }
    }
}

struct AdminLinks: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "links", abstract: "Shows and revokes the links to the shares of a zone.",
        discussion: """
            The cloud stores a digest of each link, and not the link itself.

            Examples:
              tidemark admin links list --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
              tidemark admin links revoke 4f1c09 --share cloudkit.zoneshare --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
            """,
        subcommands: [AdminLinksList.self, AdminLinksRevoke.self])
}

struct AdminLinksList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the links to the shares of a zone.",
        discussion: """
            'for' is the participant who alone may use the link.

            Examples:
              tidemark admin links list --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
            """)

    @OptionGroup var zone: AdminPlace

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let link, share: String
        let title, participant, name: String?
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            var lines: [Line] = []
            for share in try await administration.shares(in: zone.place) {
                for link in try await administration.links(to: share.id.recordName, in: zone.place) {
                    let person = share.participants.first { $0.id == link.participant }
                    lines.append(
                        Line(
                            link: link.id, share: share.id.recordName, title: share.title, participant: link.participant,
                            name: person?.identity.title))
                }
            }
            try listing.show(lines, columns: ["link", "share", "title", "for"], cutsLast: false, none: "there is no link") {
                line in
                [line.link, line.share, line.title ?? "", line.name ?? line.participant ?? "everybody"]
            }
        }
    }
}

struct AdminLinksRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Revokes a link; participants who have accepted it stay.",
        discussion: """
            Examples:
              tidemark admin links revoke 4f1c09 --share cloudkit.zoneshare --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
            """)

    @Argument(help: "The link's identifier, or its beginning.")
    var id: String

    @Option(help: ArgumentHelp("The record of the share.", valueName: "name"))
    var share: String

    @OptionGroup var zone: AdminPlace

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let all = try await administration.links(to: share, in: zone.place).map(\.id)
            let found = try identifier(id, of: all, "link", listedBy: "links")
            try await administration.revokeLink(found, to: share, in: zone.place)
            try outcome.tell("admin links revoke", ["link": found, "share": share], text: "revoked the link \(found)")
        }
    }
}

struct AdminPermissions: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "permissions", abstract: "Shows what a person may do in a zone, and the reasons.",
        discussion: """
            The person is an account's address, its identifier, or a user record name; an address without an account is reported as invited, \
            or as somebody who takes no part.

            Examples:
              tidemark admin permissions ben@example.org --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
              tidemark admin permissions ben@example.org --container journal --data ~/cloud --json
            """)

    @Argument(help: "The person.")
    var person: String

    @OptionGroup var zone: AdminPlace

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let person: String
        let user, share: String?
        let records: String
        let role, permission, status: String?
        let operation: String
        let isAllowed: Bool
        let reason: String
        let remedy: String?
    }

    func run() async throws {
        try await reportingErrors {
            let report = try await listing.place.administration().permissions(of: person, in: zone.place)
            let lines = report.parts.flatMap { part in
                part.decisions.map { decision in
                    Line(
                        person: report.person, user: report.userRecordName, share: part.share?.id.recordName,
                        records: part.covers,
                        role: part.participant?.role.title, permission: part.participant?.permission.title,
                        status: part.participant?.acceptanceStatus.title, operation: decision.operation.rawValue,
                        isAllowed: decision.isAllowed && report.obstacle == nil, reason: report.obstacle ?? decision.reason,
                        remedy: decision.remedy?.text)
                }
            }
            try listing.show(
                lines, columns: ["records", "operation", "allowed", "reason"], cutsLast: false, none: "there is nothing"
            ) { line in
                [line.records, line.operation, line.isAllowed ? "yes" : "no", line.reason]
            }
        }
    }
}
