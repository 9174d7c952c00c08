import ArgumentParser
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

struct AdminAccountShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows what an account has stored, by container.",
        discussion: """
            Records count with their names, also deleted ones, because devices have to fetch deletions. An asset counts once. Replies to \
            requests count while the cloud stores them: for seven days, and the newest 32 for longer. Records that an account saves in \
            the public database count for the account.

            Examples:
              tidemark admin account show anna@example.org --data ~/cloud
              tidemark admin account show anna@example.org --data ~/cloud --json
            """)

    @Argument(help: "The address.")
    var email: String

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let container, environment, user: String
        let used, reserved: Int64
        let quota: Int64?
    }

    func run() async throws {
        try await reportingErrors {
            let details = try await listing.place.administration().details(of: email)
            let account = details.account
            let lines = details.usage.map {
                Line(
                    container: $0.container, environment: $0.environment.rawValue, user: $0.userRecordName, used: $0.bytes,
                    reserved: $0.reserved, quota: account.quota == .max ? nil : account.quota)
            }
            try listing.show(
                lines, columns: ["container", "environment", "used", "uploads begun", "quota"],
                none: "\(account.email) has nothing stored"
            ) { line in
                [
                    line.container, line.environment, Wording.bytes(Int(line.used)), Wording.bytes(Int(line.reserved)),
                    Quota.text(line.quota ?? .max),
                ]
            }
        }
    }
}

struct AdminAccountRecount: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "recount",
        abstract: "Recounts the storage of all accounts, and corrects the stored totals.",
        discussion: """
            The command counts a container in one transaction; saves wait meanwhile.

            Examples:
              tidemark admin account recount --data ~/cloud
              tidemark admin account recount --data ~/cloud --json
            """)

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let container, environment, user: String
        let account: String?
        let counted, found: Int64
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            let cloud = administration.cloud
            let accounts = try await cloud.allAccounts()
            var lines: [Line] = []
            for recount in try await administration.recountUsage() {
                for (user, correction) in recount.corrected.sorted(by: { $0.key < $1.key }) {
                    lines.append(
                        Line(
                            container: recount.container, environment: recount.environment.rawValue, user: user,
                            account: accounts.first { cloud.userRecordName(of: $0, in: recount.container) == user }?.email,
                            counted: correction.counted, found: correction.found))
                }
            }
            try listing.show(
                lines, columns: ["container", "environment", "account", "was counted", "is"],
                none: "all numbers were right"
            ) { line in
                [
                    line.container, line.environment, line.account ?? line.user, Wording.bytes(Int(line.counted)),
                    Wording.bytes(Int(line.found)),
                ]
            }
        }
    }
}
