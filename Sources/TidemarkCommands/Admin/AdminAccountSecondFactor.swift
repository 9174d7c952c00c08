import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity

struct AdminAccountSecondFactor: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "second-factor", abstract: "Shows whether an account has a second factor, and takes it away.",
        discussion: """
            With --remove the account signs in with the password alone, and all its sessions end. If a device was stolen, replace the \
            password first: until then whoever knows it could sign in without a code.

            Examples:
              tidemark admin account second-factor anna@example.org --data ~/cloud
              tidemark admin account second-factor anna@example.org --remove --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Flag(help: "Takes the second factor away, and ends the account's sessions.")
    var remove = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    private struct Report: Encodable {
        let account, email: String
        let hasSecondFactor: Bool
        let recoveryCodes: Int?
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            if remove {
                let (account, hadOne) = try await administration.removeSecondFactor(of: email)
                return try outcome.tell(
                    "admin account second-factor",
                    ["account": account.id, "email": account.email, "hadSecondFactor": hadOne],
                    text: Self.text(account, hadOne))
            }
            let details = try await administration.details(of: email)
            let factor = details.secondFactor
            guard !outcome.json else {
                return try Output.json(
                    Report(
                        account: details.account.id, email: details.account.email, hasSecondFactor: factor != nil,
                        recoveryCodes: factor?.recoveryCodes))
            }
            try Output.line("second factor of \(details.account.email): \(factor?.text ?? "none")")
        }
    }

    /// The sentence that reports the result.
    static func text(_ account: StoredAccount, _ hadOne: Bool) -> String {
        hadOne
            ? "\(account.email) signs in with the password alone, in the console, on the account's pages and on devices; its sessions are ended"
            : "\(account.email) has no second factor: nothing is changed"
    }
}
