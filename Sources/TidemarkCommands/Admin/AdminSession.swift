import ArgumentParser
import TidemarkAccess
import TidemarkModel

struct AdminSession: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Shows who is signed in, and ends sessions.",
        discussion: """
            Examples:
              tidemark admin session list --data ~/cloud
              tidemark admin session end 9c41d0e2 --data ~/cloud
              tidemark admin session end --account anna@example.org --data ~/cloud
            """,
        subcommands: [AdminSessionList.self, AdminSessionEnd.self])
}

struct AdminSessionList: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Shows the sessions.",
        discussion: """
            A session is kept until its last token can't be good any more; 'until' is when that is, at the latest.

            Examples:
              tidemark admin session list --data ~/cloud
              tidemark admin session list --account anna@example.org --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("Only those of this account.", valueName: "address"))
    var account: String?

    @OptionGroup var place: AdminData

    @Flag(help: "Prints a JSON object a line.")
    var json = false

    private struct Line: Encodable { let id, account, container, environment, kind, began, until: String }

    func run() async throws {
        try await reportingErrors {
            let (cloud, book) = try place.open()
            let only = try await account.asyncMap { try await cloud.demandAccount($0).id }
            let addresses = try await cloud.addresses()
            let sessions = try await book.sessions().filter { only == nil || $0.account == only }
            if !json, sessions.isEmpty { return try Output.line("nobody is signed in") }
            var table = TextTable(columns: ["id", "account", "container", "environment", "kind", "began", "until"])
            for it in sessions {
                let kind =
                    switch it.kind {
                    case .web(staysSignedIn: false): "web"
                    case .web(staysSignedIn: true): "web, stays"
                    case .device: "device"
                    }
                let address = addresses[it.account] ?? it.account
                if json {
                    try Output.json(
                        Line(
                            id: it.id, account: address, container: it.container, environment: it.environment.rawValue,
                            kind: kind,
                            began: Timestamp.text(microseconds: it.began), until: Timestamp.text(microseconds: it.expires)))
                } else {
                    try table.add([
                        it.id, address, it.container, it.environment.rawValue, kind, Wording.moment(it.began),
                        Wording.moment(it.expires),
                    ])
                }
            }
            if !json { try table.finish() }
        }
    }
}

extension Optional {
    fileprivate func asyncMap<Result>(_ transform: (Wrapped) async throws -> Result) async throws -> Result? {
        guard let self else { return nil }
        return try await transform(self)
    }
}

struct AdminSessionEnd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "end", abstract: "Ends a session, all of an account, or all there are.",
        discussion: """
            Examples:
              tidemark admin session end 9c41d0e2 --data ~/cloud
              tidemark admin session end --account anna@example.org --data ~/cloud
              tidemark admin session end --all --data ~/cloud
            """)

    @Argument(help: "The session's identifier, or the beginning of it.")
    var id: String?

    @Option(help: ArgumentHelp("All sessions of this account.", valueName: "address"))
    var account: String?

    @Flag(help: "All sessions there are.")
    var all = false

    @OptionGroup var place: AdminData

    func validate() throws {
        guard [id != nil, account != nil, all].count(where: { $0 }) == 1 else {
            throw ValidationError("say which: an identifier, --account or --all")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let (cloud, book) = try place.open()
            var count = 1
            if let id {
                try await book.endSession(id: identifier(id, of: book.sessions().map(\.id), "session"))
            } else if let account {
                count = try await book.endSessions(of: cloud.demandAccount(account).id)
            } else {
                count = try await book.endAllSessions()
            }
            try Output.line("ended \(Wording.count(count, "session"))")
        }
    }
}
