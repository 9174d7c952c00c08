import ArgumentParser
import TidemarkAdministration
import TidemarkIdentity
import TidemarkModel

struct AdminToken: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token", abstract: "Creates, shows and revokes the API tokens of programs.",
        discussion: """
            A program sends its token with each request. The token allows reading public records and signing people in.

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
    /// The token itself, which only the command that makes it shows.
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
        commandName: "add", abstract: "Creates an API token, and prints it once.",
        discussion: """
            After a sign-in, the browser is redirected to the URL of --callback, or the page posts a message to the window that opened \
            it, if that window has the origin of --popup.

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

    @Option(help: ArgumentHelp("A description of its purpose.", valueName: "text"))
    var name = ""

    @Option(help: ArgumentHelp("The URL to which the browser is redirected with a session token.", valueName: "url"))
    var callback: String?

    @Option(help: ArgumentHelp("The origin whose window receives a session token.", valueName: "origin"))
    var popup: String?

    @Option(
        help: ArgumentHelp("An origin whose pages may use the token; can be repeated. (default: any origin)", valueName: "origin")
    )
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
            let made = try await place.administration().addAPIToken(
                of: container, environment: environment, name: name,
                callback: callback.map { .redirect($0) } ?? .popup(origin: popup ?? ""), origins: origin)
            if json { return try Output.json(TokenLine(made.token, text: made.text)) }
            Output.error("note: this is the token \(made.token.id); it is not shown again")
            try Output.line(made.text)
        }
    }
}

struct AdminTokenList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the identifiers of API tokens; the tokens themselves are not stored.",
        discussion: """
            Examples:
              tidemark admin token list --data ~/cloud
              tidemark admin token list --data ~/cloud --json
            """)

    @OptionGroup var listing: AdminListing

    func run() async throws {
        try await reportingErrors {
            try listing.show(
                try await listing.place.administration().apiTokens().map { TokenLine($0) },
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
        commandName: "revoke", abstract: "Revokes an API token.",
        discussion: """
            Examples:
              tidemark admin token revoke 1f6b2c9a --data ~/cloud
            """)

    @OptionGroup var revocation: AdminRevocation

    func run() async throws {
        try await revocation.run("token", of: { try await $0.apiTokens() }, by: { try await $0.revokeAPIToken($1) })
    }
}
