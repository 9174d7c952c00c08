import ArgumentParser
import TidemarkAdministration
import TidemarkCloud
import TidemarkModel

struct AdminZones: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "zones", abstract: "Shows the zones of a database, with the numbers of their records.",
        discussion: """
            Examples:
              tidemark admin zones --container journal --data ~/cloud
              tidemark admin zones --container journal --scope private \\
                  --account anna@example.org --data ~/cloud
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
        commandName: "shares", abstract: "Shows the shares of a zone, with their participants.",
        discussion: """
            Examples:
              tidemark admin shares --container journal --scope private \\
                  --account anna@example.org --zone Trips --data ~/cloud
            """)

    @OptionGroup var zone: AdminPlace

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let share: String
        let root, title: String?
        let publicPermission, participant: String
        let name: String?
        let role, permission, status: String
    }

    func run() async throws {
        try await reportingErrors {
            var lines: [Line] = []
            for share in try await listing.place.administration().shares(in: zone.place) {
                let root: String? = if case .hierarchy(let root) = share.coverage { root } else { nil }
                for participant in share.participants {
                    lines.append(
                        Line(
                            share: share.id.recordName, root: root, title: share.title,
                            publicPermission: share.publicPermission.title, participant: participant.id,
                            name: participant.identity.title, role: participant.role.title,
                            permission: participant.permission.title,
                            status: participant.acceptanceStatus.title))
                }
            }
            try listing.show(
                lines, columns: ["share", "of", "title", "everybody", "participant", "role", "permission", "status"],
                none: "nothing is shared there"
            ) { line in
                [
                    line.share, line.root ?? "the zone", line.title ?? "", line.publicPermission, line.name ?? line.participant,
                    line.role, line.permission, line.status,
                ]
            }
        }
    }
}
