import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

extension Operator.Role: ExpressibleByArgument {}

struct AdminOperator: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "operator", abstract: "Adds, shows and removes those who may use the console.",
        discussion: """
            An operator is an account that signs in at /console of the server with its password. The role 'operator' has all containers, \
            accounts and operators; the role 'developer' has the named containers, and private records in development only.

            Examples:
              tidemark admin operator add anna@example.org --data ~/cloud
              tidemark admin operator add ben@example.org --role developer \\
                  --container iCloud.org.example.journal --data ~/cloud
              tidemark admin operator list --data ~/cloud
              tidemark admin operator remove ben@example.org --data ~/cloud
              tidemark admin operator reset anna@example.org --data ~/cloud
            """,
        subcommands: [AdminOperatorAdd.self, AdminOperatorList.self, AdminOperatorRemove.self, AdminOperatorReset.self])
}

struct AdminOperatorAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Gives an account a role in the console, in place of the one it has.",
        discussion: """
            The account needs a password to sign in: 'tidemark admin account password' sets one.

            Examples:
              tidemark admin operator add anna@example.org --data ~/cloud
              tidemark admin operator add ben@example.org --role developer \\
                  --container iCloud.org.example.journal --data ~/cloud
            """)

    @Argument(help: "The account's address.")
    var email: String

    @Option(help: "operator or developer.")
    var role = Operator.Role.operator

    @Option(help: ArgumentHelp("A container of a developer; can be repeated.", valueName: "name"))
    var container: [String] = []

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func validate() throws {
        guard role == .developer || container.isEmpty else {
            throw ValidationError("an operator has all containers; --container is for --role developer")
        }
        guard role == .operator || !container.isEmpty else {
            throw ValidationError("say which containers the developer has: --container")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let account = try await administration.setOperator(email, role: role, containers: container)
            let containers = Set(container).sorted()
            try outcome.tell(
                "admin operator add",
                ["account": account.id, "email": account.email, "role": role.rawValue, "containers": containers],
                text:
                    "\(account.email) is \(role == .operator ? "an operator" : "a developer of \(containers.joined(separator: ", "))")"
            )
        }
    }
}

struct AdminOperatorList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the operators.",
        discussion: """
            Examples:
              tidemark admin operator list --data ~/cloud
              tidemark admin operator list --data ~/cloud --json
            """)

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let account: String
        let email: String?
        let role: String
        let containers: [String]
        let added: String
    }

    func run() async throws {
        try await reportingErrors {
            let lines = try await listing.place.administration().operators().map {
                Line(
                    account: $0.role.id, email: $0.account?.email, role: $0.role.role.rawValue, containers: $0.role.containers,
                    added: Timestamp.text(microseconds: $0.role.added))
            }
            try listing.show(
                lines, columns: ["address", "role", "containers", "since"],
                none: "nobody may use the console; add an account with 'tidemark admin operator add'"
            ) { line in
                [
                    line.email ?? line.account, line.role,
                    line.containers.isEmpty ? "all" : line.containers.joined(separator: " "),
                    Wording.moment(line.added),
                ]
            }
        }
    }
}

struct AdminOperatorRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Takes an account's role away, and ends its sessions of the console.",
        discussion: """
            For the last operator the command asks first, and without a terminal needs --yes: nobody gives roles in the console then, until \
            'tidemark admin operator add' does.

            Examples:
              tidemark admin operator remove ben@example.org --data ~/cloud
              tidemark admin operator remove anna@example.org --yes --data ~/cloud
            """)

    @Argument(help: "The account's address.")
    var email: String

    @Flag(help: "Does not ask before the last operator loses the role.")
    var yes = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let isLast = try await administration.isLastOperator(email)
            if isLast {
                let account = try await administration.account(email)
                let what = "\(account.email) is the last operator: nobody gives roles or changes accounts in the console then."
                guard yes || isTyped("\(what) To go on, type the address again:", account.email) else {
                    throw ending(
                        "\(what) Nothing was changed; give another account the role first, with 'tidemark admin operator add', or add --yes",
                        .usage)
                }
            }
            let account = try await administration.removeOperator(email, evenIfLast: isLast)
            try outcome.tell(
                "admin operator remove", ["account": account.id, "email": account.email],
                text: "\(account.email) is no operator any more")
        }
    }
}

struct AdminOperatorReset: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset", abstract: "Removes an account's second factor, for somebody who has lost it.",
        discussion: """
            The command does the same as 'tidemark admin account second-factor --remove', for any account. All sessions of the account end.

            Examples:
              tidemark admin operator reset anna@example.org --data ~/cloud
            """)

    @Argument(help: "The account's address.")
    var email: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let (account, hadOne) = try await place.administration().removeSecondFactor(of: email)
            try outcome.tell(
                "admin operator reset", ["account": account.id, "email": account.email, "hadSecondFactor": hadOne],
                text: AdminAccountSecondFactor.text(account, hadOne))
        }
    }
}
