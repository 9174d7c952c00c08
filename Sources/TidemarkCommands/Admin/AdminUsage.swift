import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

struct AdminUsage: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "usage",
        abstract: "Shows what containers have: records, assets and bytes; or, of one container, by account.",
        discussion: """
            The command counts all rows. 'bytes' are those that count against quotas.

            Examples:
              tidemark admin usage --data ~/cloud
              tidemark admin usage --container journal --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("Shows the accounts of this container.", valueName: "name"))
    var container: String?

    @Option(help: "With --container: development or production.")
    var environment: StoreEnvironment = .development

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let container, environment: String
        let records, assets: Int
        let assetBytes, bytes: Int64
        let owners: Int
    }

    private struct AccountLine: Encodable {
        let account: String?
        let user: String
        let bytes: Int64
        let quota: Int64?
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            if let container {
                let lines = try await administration.accountUsage(of: container, environment: environment).map {
                    AccountLine(account: $0.email, user: $0.userRecordName, bytes: $0.bytes, quota: $0.quota)
                }
                return try listing.show(
                    lines, columns: ["account", "bytes", "quota"],
                    none: "nothing is stored in \(container) (\(environment.rawValue))"
                ) { line in
                    [line.account ?? line.user, Wording.bytes(Int(line.bytes)), Quota.text(line.quota ?? .max)]
                }
            }
            let lines = try await administration.usage().map {
                Line(
                    container: $0.container, environment: $0.environment.rawValue, records: $0.totals.records,
                    assets: $0.totals.assets, assetBytes: $0.totals.assetBytes, bytes: $0.bytes, owners: $0.totals.owners)
            }
            try listing.show(
                lines, columns: ["container", "environment", "records", "assets", "of assets", "in all", "owners"],
                none: "no container has anything; add one with 'tidemark admin container add'"
            ) { line in
                [
                    line.container, line.environment, Wording.count(line.records), Wording.count(line.assets),
                    Wording.bytes(Int(line.assetBytes)), Wording.bytes(Int(line.bytes)), Wording.count(line.owners),
                ]
            }
        }
    }
}
