import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

struct AdminAccountShow: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "show", abstract: "Shows an account, and what it has stored, by container.",
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

    @Flag(help: "Prints one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    private struct Usage: Encodable {
        let container, environment, user: String
        let used, reserved: Int64
    }

    private struct Account: Encodable {
        let id, email: String
        let name, phone: String?
        let status: String
        let hasPassword, hasSecondFactor: Bool
        let recoveryCodes: Int?
        let role: String?
        let sessions: Int
        let quota: Int64?
        let usage: [Usage]
    }

    func run() async throws {
        try await reportingErrors {
            let details = try await place.administration().details(of: email)
            let account = details.account
            let shown = Account(
                id: account.id, email: account.email, name: account.name?.title, phone: account.phone,
                status: account.status.rawValue, hasPassword: details.hasPassword,
                hasSecondFactor: details.secondFactor != nil, recoveryCodes: details.secondFactor?.recoveryCodes,
                role: details.role?.role.rawValue, sessions: details.sessions.count,
                quota: account.quota == .max ? nil : account.quota,
                usage: details.usage.map {
                    Usage(
                        container: $0.container, environment: $0.environment.rawValue, user: $0.userRecordName, used: $0.bytes,
                        reserved: $0.reserved)
                })
            if json { return try Output.json(shown) }
            try Self.show(shown, details.secondFactor)
        }
    }

    private static func show(_ account: Account, _ factor: SecondFactor?) throws {
        let facts = [
            ("address", account.email), ("name", account.name), ("phone", account.phone), ("status", account.status),
            ("password", account.hasPassword ? "set" : "none"), ("factor", factor?.text ?? "none"),
            ("role", account.role ?? "none"),
            ("sessions", Wording.count(account.sessions)), ("quota", Quota.text(account.quota ?? .max)),
        ]
        for case (let name, let value?) in facts {
            try Output.line(name.padding(toLength: 10, withPad: " ", startingAt: 0) + Output.printable(value))
        }
        guard !account.usage.isEmpty else { return try Output.line("\nnothing is stored for it") }
        try Output.line("")
        var table = TextTable(columns: ["container", "environment", "used", "uploads begun"], cutsLast: true)
        for line in account.usage {
            try table.add([
                line.container, line.environment, Wording.bytes(Int(line.used)), Wording.bytes(Int(line.reserved)),
            ])
        }
        try table.finish()
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
