import ArgumentParser
import TidemarkIdentity
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
            'device' is what the device or the browser calls itself. 'used' is when the session was used last, to the hour, or to a quarter \
            of one in a browser that does not stay signed in; 'from' is from where, of IPv6 the network. Unless it is used again, it ends at \
            'until': a device's 180 days after its last new token, a browser's after 30 minutes, or two weeks where it stays signed in.

            Examples:
              tidemark admin session list --data ~/cloud
              tidemark admin session list --account anna@example.org --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("Only those of this account.", valueName: "address"))
    var account: String?

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let id, account, container, environment, kind: String
        let device: String?
        let began: String
        let used, address: String?
        let until: String

        /// - Parameter account: Its address.
        init(_ session: Session, account: String) {
            (id, self.account, container) = (session.id, account, session.container)
            environment = session.environment.rawValue
            kind =
                switch session.kind {
                case .web(staysSignedIn: false): "web"
                case .web(staysSignedIn: true): "web, stays"
                case .device: "device"
                }
            device = session.device.isEmpty ? nil : session.device
            address = session.address.isEmpty ? nil : session.address
            began = Timestamp.text(microseconds: session.began)
            used = session.used == 0 ? nil : Timestamp.text(microseconds: session.used)
            until = Timestamp.text(microseconds: session.expires)
        }
    }

    func run() async throws {
        try await reportingErrors {
            let (cloud, credentials) = try listing.place.open()
            let only = try await account.asyncMap { try await cloud.demandAccount($0).id }
            let addresses = try await cloud.addresses()
            let sessions = try await credentials.sessions().filter { only == nil || $0.account == only }
            try listing.show(
                sessions.map { Line($0, account: addresses[$0.account] ?? $0.account) },
                columns: [
                    "id", "account", "container", "environment", "kind", "device", "began", "used", "from", "until",
                ], none: "nobody is signed in"
            ) { line in
                [
                    line.id, line.account, line.container, line.environment, line.kind, line.device ?? "",
                    Wording.moment(line.began), line.used.map(Wording.moment) ?? "", line.address ?? "",
                    Wording.moment(line.until),
                ]
            }
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

    @OptionGroup var outcome: Outcome

    @OptionGroup var place: AdminData

    func validate() throws {
        guard [id != nil, account != nil, all].count(where: { $0 }) == 1 else {
            throw ValidationError("say which: an identifier, --account or --all")
        }
    }

    func run() async throws {
        try await reportingErrors {
            let (cloud, credentials) = try place.open()
            var count = 1
            var ended: String?
            if let id {
                let found = try identifier(id, of: try await credentials.sessions().map(\.id), "session")
                try await credentials.endSession(id: found)
                try await credentials.auditAdministration("session.end", subject: found)
                ended = found
            } else if let account {
                let found = try await cloud.demandAccount(account).id
                count = try await credentials.endSessions(of: found)
                try await credentials.auditAdministration("session.end", account: found, subject: "all of the account")
            } else {
                count = try await credentials.endAllSessions()
                try await credentials.auditAdministration("session.end", subject: "all")
            }
            try outcome.tell(
                "admin session end", ["session": ended, "account": account, "sessions": count],
                text: "ended \(Wording.count(count, "session"))")
        }
    }
}
