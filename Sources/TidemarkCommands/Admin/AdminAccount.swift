public import ArgumentParser
import Foundation
import TidemarkAdministration
public import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkIdentity
import TidemarkModel

extension CloudAccount.Status: CaseIterable, ExpressibleByArgument {
    public static var allCases: [CloudAccount.Status] { [.available, .restricted, .temporarilyUnavailable, .noAccount] }
}

/// A number of bytes: `500MB`, `5GB`, `1234567`; `none` for no limit.
struct Quota: ExpressibleByArgument {
    let bytes: Int64

    init?(argument: String) {
        guard let bytes = ByteCountText.limit(argument) else { return nil }
        self.bytes = bytes
    }

    static func text(_ bytes: Int64) -> String { bytes == .max ? "none" : Wording.bytes(Int(bytes)) }
}

struct AdminAccount: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "account", abstract: "Adds, shows and changes the accounts of a cloud.",
        discussion: """
            Examples:
              tidemark admin account add anna@example.org --name "Anna Berg" --data ~/cloud
              tidemark admin account list --data ~/cloud
              tidemark admin account show anna@example.org --data ~/cloud
              tidemark admin account set anna@example.org --quota 20GB --data ~/cloud
              tidemark admin account password anna@example.org --data ~/cloud
              tidemark admin account second-factor anna@example.org --data ~/cloud
              tidemark admin account identities anna@example.org --data ~/cloud
              tidemark admin account remove anna@example.org --data ~/cloud
            """,
        subcommands: [
            AdminAccountAdd.self, AdminAccountList.self, AdminAccountShow.self, AdminAccountSet.self, AdminAccountPassword.self,
            AdminAccountResetLink.self, AdminAccountSecondFactor.self, AdminAccountIdentities.self, AdminAccountExport.self,
            AdminAccountRemove.self, AdminAccountRecount.self,
        ])
}

struct AdminAccountAdd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Adds an account, with a password.",
        discussion: """
            The command asks for the password twice on the terminal, or reads it from a line of standard input. A password has at least \
            8 bytes. If the directory holds no cloud, the command creates one.

            Examples:
              tidemark admin account add anna@example.org --name "Anna Berg" --data ~/cloud
              pass show cloud/anna | tidemark admin account add anna@example.org \\
                  --password-stdin --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Option(help: ArgumentHelp("The person's name, as participants of their shares see it.", valueName: "name"))
    var name: String?

    @Option(help: ArgumentHelp("The person's phone number, for invitations, with + and the country code."))
    var phone: String?

    @Option(
        help: ArgumentHelp(
            "How much it may store in a container, such as 500MB; 'none' for no limit. (default: 5GB)", valueName: "bytes"))
    var quota: Quota?

    @OptionGroup var entry: PasswordEntry

    @Flag(help: "Adds the account without a password: signing in needs one first.")
    var noPassword = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func validate() throws {
        guard !noPassword || !entry.passwordStdin else {
            throw ValidationError("--no-password and --password-stdin exclude each other")
        }
    }

    func run() async throws {
        try await reportingErrors {
            // All arguments are checked before anything is made.
            try EmbeddedCloud.check(email: email, container: "default")
            if let known = try await place.openIfThere()?.account(email) {
                throw ending(
                    "there is an account \(known.email) already; change it with 'tidemark admin account set' or 'password'",
                    .cannotCreate)
            }
            let password = try noPassword ? nil : entry.read(of: email)
            if let password { try CredentialStore.check(password: password) }
            let account = try await place.administrationOrMake().addAccount(
                email, phone: phone, name: name.map(PersonName.init(text:)), quota: quota?.bytes ?? StoredAccount.servedQuota,
                password: password)
            try outcome.tell(
                "admin account add", ["account": account.id, "email": account.email, "hasPassword": password != nil],
                text: "added \(account.email)\(noPassword ? ", without a password" : "")")
        }
    }
}

struct AdminAccountList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the accounts.",
        discussion: """
            Examples:
              tidemark admin account list --data ~/cloud
              tidemark admin account list --data ~/cloud --json
            """)

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let id, email: String
        let name, phone: String?
        let quota: Int64?
        let used: Int64
        let status: String
        let hasPassword: Bool
        let sessions: Int
    }

    func run() async throws {
        try await reportingErrors {
            let (cloud, credentials) = try await listing.place.open()
            let withPassword = try await credentials.accountsWithPassword()
            let sessions = Dictionary(grouping: try await credentials.sessions(), by: \.account)
            let accounts = try await cloud.allAccounts()
            var lines: [Line] = []
            for account in accounts {
                lines.append(
                    Line(
                        id: account.id, email: account.email, name: account.name?.title, phone: account.phone,
                        quota: account.quota == .max ? nil : account.quota,
                        used: try await cloud.usage(of: account).reduce(0) { $0 + $1.bytes }, status: account.status.rawValue,
                        hasPassword: withPassword.contains(account.id), sessions: sessions[account.id]?.count ?? 0))
            }
            try listing.show(
                lines, columns: ["address", "name", "phone", "quota", "used", "status", "password", "sessions"],
                none: "there is no account; add one with 'tidemark admin account add'"
            ) { line in
                [
                    line.email, line.name ?? "", line.phone ?? "", Quota.text(line.quota ?? .max),
                    Wording.bytes(Int(line.used)), line.status, line.hasPassword ? "yes" : "no",
                    Wording.count(line.sessions),
                ]
            }
        }
    }
}

struct AdminAccountSet: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Changes an account's name, phone number, quota or status.",
        discussion: """
            Sessions stay signed in; an account whose status is not 'available' can't be used until it is again.

            Examples:
              tidemark admin account set anna@example.org --quota 20GB --data ~/cloud
              tidemark admin account set anna@example.org --status restricted --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Option(help: ArgumentHelp("The person's name; empty for none.", valueName: "name"))
    var name: String?

    @Option(help: "The person's phone number; empty for none.")
    var phone: String?

    @Option(help: ArgumentHelp("The quota per container, such as 500MB; 'none' for no limit.", valueName: "bytes"))
    var quota: Quota?

    @Option(help: "available, restricted, temporarilyUnavailable or noAccount.")
    var status: CloudAccount.Status?

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    @Option(help: "Whether others can find the person by the address or the phone number: on or off.")
    var discoverable: Switch?

    func validate() throws {
        guard name != nil || phone != nil || quota != nil || status != nil || discoverable != nil else {
            throw ValidationError("say what to change: --name, --phone, --quota, --status or --discoverable")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let (name, phone, quota, status, discoverable) = (self.name, self.phone, self.quota, self.status, self.discoverable)
            let account = try await place.administration().update(email) { account in
                if let name { account.name = name.isEmpty ? nil : PersonName(text: name) }
                if let phone { account.phone = phone.isEmpty ? nil : phone }
                if let quota { account.quota = quota.bytes }
                if let status { account.status = status }
                if let discoverable { account.isDiscoverable = discoverable == .on }
            }
            try outcome.tell(
                "admin account set",
                [
                    "account": account.id, "email": account.email, "name": name, "phone": phone,
                    "hasQuota": quota.map { $0.bytes != .max }, "quota": quota.flatMap { $0.bytes == .max ? nil : $0.bytes },
                    "status": status?.rawValue,
                    "discoverable": discoverable.map { $0 == .on },
                ], text: "changed \(account.email): \(changes)")
        }
    }

    /// The changes, for people.
    private var changes: String {
        let all: [String?] = [
            name.map { $0.isEmpty ? "no name" : "name \($0)" }, phone.map { $0.isEmpty ? "no phone number" : "phone \($0)" },
            quota.map { $0.bytes == .max ? "no quota" : "quota \(Quota.text($0.bytes))" }, status.map { "status \($0.rawValue)" },
            discoverable.map { "discoverable \($0.rawValue)" },
        ]
        return all.compactMap(\.self).joined(separator: ", ")
    }
}

struct AdminAccountPassword: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "password", abstract: "Replaces an account's password, and ends its sessions.",
        discussion: """
            Examples:
              tidemark admin account password anna@example.org --data ~/cloud
              pass show cloud/anna | tidemark admin account password anna@example.org \\
                  --password-stdin --data ~/cloud
              tidemark admin account password anna@example.org --remove --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @OptionGroup var entry: PasswordEntry

    @Flag(help: "Removes the password: signing in needs a new one first.")
    var remove = false

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func validate() throws {
        guard !remove || !entry.passwordStdin else { throw ValidationError("--remove and --password-stdin exclude each other") }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let account = try await administration.account(email)
            if remove {
                _ = try await administration.setPassword(nil, of: account.id)
                return try outcome.tell(
                    "admin account password", ["account": account.id, "email": account.email, "hasPassword": false],
                    text: "\(account.email) has no password; its sessions are ended")
            }
            _ = try await administration.setPassword(try entry.read(of: account.email), of: account.id)
            try outcome.tell(
                "admin account password", ["account": account.id, "email": account.email, "hasPassword": true],
                text: "\(account.email) has another password; its sessions are ended")
        }
    }
}

struct AdminAccountResetLink: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reset-link", abstract: "Makes a link with which a person sets a password in a browser.",
        discussion: """
            The link is good once, and for a day. Send it to the person, and to nobody else. It is for a forgotten password, and for a new \
            account that was added with --no-password. The password before stays valid until then; all sessions of the account end when the new \
            one is set.

            Examples:
              tidemark admin account reset-link anna@example.org \\
                  --url https://cloud.example.org --data ~/cloud
              tidemark admin account add ben@example.org --no-password --data ~/cloud
              tidemark admin account reset-link ben@example.org \\
                  --url https://cloud.example.org --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Option(help: ArgumentHelp("Where people reach the server.", valueName: "url"))
    var url: String

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func run() async throws {
        try await reportingErrors {
            let server = try ServerAddress(url, allowsInsecure: true)
            let (account, path) = try await place.administration().passwordLink(of: email)
            try outcome.tell(
                "admin account reset-link", ["account": account.id, "email": account.email, "link": "\(server)\(path)"],
                text: "\(server)\(path)")
            guard !outcome.json else { return }
            Output.error("note: the link is a secret of \(account.email); it is good once, and for a day")
            Output.error("note: all sessions of the account end when a password is set with it")
        }
    }
}

struct AdminAccountRemove: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Removes an account; --with-data also removes its stored data.",
        discussion: """
            Without --with-data an account that has zones or records stays, so that they are not lost; 'tidemark admin account set' with \
            '--status restricted' blocks it. \
            With --with-data, the command permanently removes the account's zones, records, shares and assets, its public records, its \
            participation in others' shares, and its password, sessions and keys. Participants of its shares lose their copies; what the \
            account's own devices have stays there. To export the data first, use 'tidemark admin account export'. An account with a role in the \
            console stays until 'tidemark admin operator remove' takes the role away.

            Examples:
              tidemark admin account remove anna@example.org --data ~/cloud
              tidemark admin account remove anna@example.org --with-data --yes --data ~/cloud
            """)

    @Argument(help: "The address.")
    var email: String

    @Flag(help: "Also removes the account's stored data.")
    var withData = false

    @Flag(help: "Does not ask for confirmation.")
    var yes = false

    @Flag(help: "Prints one JSON object.")
    var json = false

    @OptionGroup var place: AdminData

    private struct Report: Encodable {
        let email: String
        let removed: EmbeddedCloud.Removed
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await place.administration()
            let account = try await administration.account(email)
            try await administration.demandNoRole(of: account)
            guard withData else {
                try await administration.removeIfUnused(account.id)
                if json { return try Output.json(Report(email: account.email, removed: .init())) }
                return try Output.line("removed \(account.email)")
            }
            if !yes {
                let holdings = try await administration.holdings(of: account.id)
                let question =
                    "This removes \(account.email) with all records and assets, for good. \(holdings.sentence("Its", "it shares")) "
                    + "To go on, type the address again:"
                guard isTyped(question, account.email) else {
                    throw ending("nothing was removed; add --yes to remove \(account.email) with all its data", .usage)
                }
            }
            let removed = try await administration.removeWithData(account.id)
            if json { return try Output.json(Report(email: account.email, removed: removed)) }
            try Output.line(
                "removed \(account.email) with \(Wording.count(removed.records, "record")) in \(Wording.count(removed.zones, "zone"))"
            )
        }
    }
}
