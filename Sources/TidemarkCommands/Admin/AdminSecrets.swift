import ArgumentParser
import TidemarkAdministration
import TidemarkIdentity

struct AdminSecrets: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets", abstract: "Replaces the signing secret of a served cloud.",
        discussion: """
            Examples:
              tidemark admin secrets rotate --data ~/cloud
              tidemark admin secrets rotate --grace-days 30 --data ~/cloud
            """,
        subcommands: [AdminSecretsRotate.self])
}

struct AdminSecretsRotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Creates a new secret; a running server uses it at once.",
        discussion: """
            The secret signs session tokens, the URLs of uploads, downloads and notifications, sign-in pages, and the identifiers of \
            browsers and devices. Without --grace-days all of them expire at once, and everybody has to sign in again: do this if \
            access.sqlite may have leaked. With --grace-days they stay valid for that many days, and accounts in use stay signed in.

            The secret does not protect passwords, API tokens and keys of servers. Change those with 'tidemark admin account password', \
            'token' and 'key'.

            Examples:
              tidemark admin secrets rotate --data ~/cloud
              tidemark admin secrets rotate --grace-days 30 --data ~/cloud
            """)

    @Option(
        help: ArgumentHelp("The number of days for which older signatures stay valid; 0 revokes them at once.", valueName: "n"))
    var graceDays = 0

    @Flag(help: "Prints one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    private struct Report: Encodable {
        let sessionsEnded, graceDays: Int
    }

    func validate() throws {
        guard (0...180).contains(graceDays) else { throw ValidationError("--grace-days takes a number from 0 to 180") }
    }

    func run() async throws {
        try await reportingErrors {
            let ended = try await place.administration().rotateSecret(graceDays: graceDays)
            if json { return try Output.json(Report(sessionsEnded: ended, graceDays: graceDays)) }
            try Output.line(
                graceDays > 0
                    ? "the secret is another one; what was signed before is good for \(Wording.count(graceDays, "day"))"
                    : "the secret is another one; \(Wording.count(ended, "session")) ended")
        }
    }
}
