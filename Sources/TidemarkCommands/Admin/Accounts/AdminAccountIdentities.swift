import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

struct AdminAccountIdentities: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "identities",
        abstract: "Shows which identities of an identity provider sign in to an account, and disconnects them.",
        discussion: """
            A disconnected identity does not sign in to the account any more. Sessions that have begun go on: end them with \
            'tidemark admin session end'. If the account has no password and no other identity, nobody can sign in to it afterwards: the \
            command asks first, and 'tidemark admin account reset-link' lets the person set a password.

            Examples:
              tidemark admin account identities anna@example.org --data ~/cloud
              tidemark admin account identities anna@example.org --disconnect 5d0c \\
                  --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Option(help: ArgumentHelp("Disconnects this identity: its identifier, or its beginning.", valueName: "id"))
    var disconnect: String?

    @Flag(help: "Does not ask before nobody can sign in any more.")
    var yes = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    private struct Line: Encodable {
        let id, issuer, subject, label, added: String
    }

    func validate() throws {
        guard !yes || disconnect != nil else { throw ValidationError("--yes goes with --disconnect") }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let ways = try await administration.waysIn(to: email)
            guard let disconnect else { return try show(ways) }
            let id = try identifier(
                disconnect, of: ways.identities.map(\.id), "identity", shownBy: "tidemark admin account identities \(email)")
            let isLast = ways.isLast(id)
            if isLast {
                let question = "\(ways.whatIsLeft(without: id)) To go on, type the address again:"
                guard yes || isTyped(question, ways.account.email) else {
                    throw ending(
                        "\(ways.whatIsLeft(without: id)) Nothing was disconnected; add --yes to disconnect it all the same",
                        .usage)
                }
            }
            let identity = try await administration.disconnectIdentity(id, of: ways.account.id, evenIfLast: isLast)
            let link = "tidemark admin account reset-link \(ways.account.email)"
            try outcome.tell(
                "admin account identities",
                [
                    "account": ways.account.id, "email": ways.account.email, "identity": id, "hasPassword": ways.hasPassword,
                    "identities": ways.identities.count - 1,
                ],
                text: "disconnected \(identity.label) at \(identity.key.issuer) from \(ways.account.email)",
                ways.whatIsLeft(without: id) + (isLast ? " Make one with '\(link)'." : ""),
                "Its sessions go on until they are ended: tidemark admin session end --account \(ways.account.email)")
        }
    }

    private func show(_ ways: Administration.WaysIn) throws {
        let lines = ways.identities.map {
            Line(
                id: $0.id, issuer: $0.key.issuer, subject: $0.key.subject, label: $0.label,
                added: Timestamp.text(microseconds: $0.added))
        }
        if outcome.json {
            for line in lines { try Output.json(line) }
            return
        }
        if lines.isEmpty {
            try Output.line("no identity of an identity provider signs in to \(ways.account.email)")
        } else {
            var table = TextTable(columns: ["id", "identity", "provider", "connected"], cutsLast: true)
            for line in lines { try table.add([line.id, line.label, line.issuer, Wording.moment(line.added)]) }
            try table.finish()
        }
        try Output.line(ways.hasPassword ? "the account has a password" : "the account has no password")
    }
}
