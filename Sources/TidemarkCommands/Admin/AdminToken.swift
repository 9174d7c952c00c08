import ArgumentParser
import TidemarkIdentity
import TidemarkModel

struct AdminToken: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Makes, shows and revokes the API tokens of programs.",
        discussion: """
            A program shows its token with each request. It may then read what is public, and have people sign in.

            Examples:
              tidemark admin token add --container journal --name Web \\
                  --callback https://journal.example.org/signed-in --data ~/cloud
              tidemark admin token list --data ~/cloud
              tidemark admin token revoke 1f6b2c9a --data ~/cloud
            """,
        subcommands: [AdminTokenAdd.self, AdminTokenList.self, AdminTokenRevoke.self])
}

private struct TokenLine: Encodable {
    let id, container, environment, name: String
    var redirect, popup: String?
    let origins: [String]
    let made: String
    /// The secret, when it is made.
    var token: String?

    init(_ token: APIToken, text: String? = nil) {
        (id, container, environment, name) = (token.id, token.container, token.environment.rawValue, token.name)
        switch token.callback {
        case .redirect(let address): redirect = address
        case .popup(let origin): popup = origin
        }
        origins = token.origins
        made = Timestamp.text(microseconds: token.made)
        self.token = text
    }
}

struct AdminTokenAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Makes an API token, and tells it this once.",
        discussion: """
            After somebody has signed in, the browser goes to the address of --callback, or the page tells the window that has opened it, if \
            that is of the origin of --popup.

            Examples:
              tidemark admin token add --container journal --name Web \\
                  --callback https://journal.example.org/signed-in --data ~/cloud
              tidemark admin token add --container journal --name Web \\
                  --popup https://journal.example.org --origin https://journal.example.org --data ~/cloud
              tidemark admin token add --container journal --name Phone \\
                  --callback org.example.journal://signed-in --environment production --data ~/cloud
            """)

    @Option(help: ArgumentHelp("The container.", valueName: "name"))
    var container: String

    @Option(help: "development or production.")
    var environment: StoreEnvironment = .development

    @Option(help: ArgumentHelp("What it is for.", valueName: "text"))
    var name = ""

    @Option(help: ArgumentHelp("Where the browser goes with a session token.", valueName: "url"))
    var callback: String?

    @Option(help: ArgumentHelp("Whose window is told a session token.", valueName: "origin"))
    var popup: String?

    @Option(help: ArgumentHelp("Whose pages may use it; can be repeated. (default: anybody's)", valueName: "origin"))
    var origin: [String] = []

    @Flag(help: "Prints one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    func validate() throws {
        guard (callback == nil) != (popup == nil) else {
            throw ValidationError("say where people come back to: --callback or --popup")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let credentials = try place.open().credentials
            let made = try await credentials.addAPIToken(
                container: container, environment: environment, name: name,
                callback: callback.map { .redirect($0) } ?? .popup(origin: popup ?? ""), origins: origin)
            try await credentials.auditAdministration("token.add", container: container, subject: made.token.id)
            if json { return try Output.json(TokenLine(made.token, text: made.text)) }
            Output.error("note: this is the token \(made.token.id); it is not shown again")
            try Output.line(made.text)
        }
    }
}

struct AdminTokenList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the API tokens by their identifiers; the tokens themselves are not kept.",
        discussion: """
            Examples:
              tidemark admin token list --data ~/cloud
              tidemark admin token list --data ~/cloud --json
            """)

    @OptionGroup var listing: AdminListing

    func run() async throws {
        try await reportingErrors {
            try listing.show(
                try listing.place.open().credentials.apiTokens().map { TokenLine($0) },
                columns: ["id", "container", "environment", "name", "comes back to", "origins"], cutsLast: false,
                none: "there is no token; make one with 'tidemark admin token add'"
            ) { line in
                [
                    line.id, line.container, line.environment, line.name, line.redirect ?? line.popup ?? "",
                    line.origins.isEmpty ? "any" : line.origins.joined(separator: " "),
                ]
            }
        }
    }
}

struct AdminTokenRevoke: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "revoke", abstract: "Ends what an API token allows.",
        discussion: """
            Examples:
              tidemark admin token revoke 1f6b2c9a --data ~/cloud
            """)

    @OptionGroup var revocation: AdminRevocation

    func run() async throws {
        try await revocation.run("token", of: { try $0.apiTokens() }, by: { try await $0.revokeAPIToken(id: $1) })
    }
}
