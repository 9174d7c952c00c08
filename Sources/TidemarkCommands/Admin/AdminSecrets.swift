import ArgumentParser
import TidemarkIdentity

struct AdminSecrets: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "secrets", abstract: "Replaces the secret that a served cloud signs with.",
        discussion: """
            Examples:
              tidemark admin secrets rotate --data ~/cloud
              tidemark admin secrets rotate --grace-days 30 --data ~/cloud
            """,
        subcommands: [AdminSecretsRotate.self])
}

struct AdminSecretsRotate: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rotate", abstract: "Makes another secret; a server that runs uses it at once.",
        discussion: """
            Session tokens, the addresses of uploads, downloads and notifications, sign-in pages and what browsers and devices are known by \
            are signed with the secret. Without --grace-days all of them end at once, and everybody signs in again: do that when \
            somebody may have seen access.sqlite. With it they stay good for so many days, and who uses the cloud meanwhile stays signed in.

            Passwords, API tokens and keys of servers are not signed with it. Change those with 'tidemark admin account password', 'token' and \
            'key'.

            Examples:
              tidemark admin secrets rotate --data ~/cloud
              tidemark admin secrets rotate --grace-days 30 --data ~/cloud
            """)

    @Option(help: ArgumentHelp("For how many days what was signed before stays good; 0 ends it at once.", valueName: "n"))
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
            let credentials = try place.open().credentials
            let ended = try await credentials.rotateSecret(grace: Int64(graceDays) * 86_400_000_000)
            try await credentials.auditAdministration("secrets.rotate", subject: "grace of \(graceDays) days")
            if json { return try Output.json(Report(sessionsEnded: ended, graceDays: graceDays)) }
            try Output.line(
                graceDays > 0
                    ? "the secret is another one; what was signed before is good for \(Wording.count(graceDays, "day"))"
                    : "the secret is another one; \(Wording.count(ended, "session")) ended")
        }
    }
}
