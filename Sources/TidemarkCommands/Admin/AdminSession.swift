import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkIdentity
import TidemarkModel

struct AdminSession: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "session", abstract: "Shows accounts' sessions, and ends sessions.",
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
            'device' is the name that the device or browser gives itself ('tidemark account sign-in --device-name'), or that its \
            person has given it; 'system' is the operating system that it says it has. 'kind' is device, web (a browser), 'web, stays', \
            console, or pages (the person's own). 'used' tells the last use as exactly as it is known: to an hour, to 15 minutes for a \
            browser that does not stay signed in, to a minute for console and pages. With --json, 'used' is the use that was noted last, \
            and there may have been others in the 'usedWithin' seconds after it. 'from' is the address (for IPv6, the network). An \
            unused session ends at 'until': on a device 180 days after its last new token, in a browser after 30 minutes, or after two \
            weeks if it stays signed in.

            Examples:
              tidemark admin session list --data ~/cloud
              tidemark admin session list --account anna@example.org --data ~/cloud --json
            """)

    @Option(help: ArgumentHelp("Only sessions of this account.", valueName: "address"))
    var account: String?

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let id, account, kind: String
        let container, environment, device, system: String?
        let began: String
        let used: String?
        let usedWithin: Int?
        let address: String?
        let until: String
        /// The last use as a text for people.
        let lastUse: String

        private enum CodingKeys: CodingKey {
            case id, account, kind, container, environment, device, system, began, used, usedWithin, address, until
        }

        /// - Parameters:
        ///   - account: The account's address.
        ///   - now: Microseconds since 1970 UTC.
        init(_ session: Session, account: String, at now: Int64) {
            (id, self.account) = (session.id, account)
            container = session.container
            environment = session.environment.rawValue
            kind =
                switch session.kind {
                case .web(staysSignedIn: false): "web"
                case .web(staysSignedIn: true): "web, stays"
                case .device: "device"
                }
            device = session.device.isEmpty ? nil : session.device
            system = session.system.isEmpty ? nil : session.system
            address = session.address.isEmpty ? nil : session.address
            began = Timestamp.text(microseconds: session.began)
            used = session.used == 0 ? nil : Timestamp.text(microseconds: session.used)
            usedWithin = session.used == 0 ? nil : session.lastUse.seconds
            lastUse = session.lastUse.text(at: now)
            until = Timestamp.text(microseconds: session.expires)
        }

        init(_ session: PageSession, account: String, at now: Int64) {
            (id, self.account, kind) = (session.id, account, session.isOfConsole ? "console" : "pages")
            (container, environment, system) = (nil, nil, nil)
            device = session.device.isEmpty ? nil : session.device
            address = session.address.isEmpty ? nil : session.address
            began = Timestamp.text(microseconds: session.began)
            used = Timestamp.text(microseconds: session.used)
            usedWithin = session.lastUse.seconds
            lastUse = session.lastUse.text(at: now)
            until = Timestamp.text(microseconds: session.expires)
        }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            let (sessions, pages) = (
                try await administration.sessions(of: account), try await administration.pageSessions(of: account)
            )
            let addresses = try await administration.cloud.addresses()
            let now = administration.credentials.time
            try listing.show(
                sessions.map { Line($0, account: addresses[$0.account] ?? $0.account, at: now) }
                    + pages.map { Line($0, account: addresses[$0.account] ?? $0.account, at: now) },
                columns: [
                    "id", "account", "container", "environment", "kind", "device", "system", "began", "used", "from", "until",
                ], none: "no account is signed in"
            ) { line in
                [
                    String(line.id.prefix(32)), line.account, line.container ?? "", line.environment ?? "", line.kind,
                    line.device ?? "", line.system ?? "", Wording.moment(line.began), line.lastUse, line.address ?? "",
                    Wording.moment(line.until),
                ]
            }
        }
    }
}

struct AdminSessionEnd: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "end", abstract: "Ends one session, all sessions of an account, or all sessions.",
        discussion: """
            Examples:
              tidemark admin session end 9c41d0e2 --data ~/cloud
              tidemark admin session end --account anna@example.org --data ~/cloud
              tidemark admin session end --all --data ~/cloud
            """)

    @Argument(help: "The session's identifier, or its beginning.")
    var id: String?

    @Option(help: ArgumentHelp("All sessions of this account.", valueName: "address"))
    var account: String?

    @Flag(help: "All sessions.")
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
            let administration = try await place.administration()
            var count = 1
            var ended: String?
            if let id {
                let all = try await administration.sessions().map(\.id) + administration.pageSessions().map(\.id)
                let found = try identifier(id, of: all, "session")
                try await administration.endSession(found)
                ended = found
            } else if let account {
                count = try await administration.signOutEverywhere(account)
            } else {
                count = try await administration.endAllSessions()
            }
            try outcome.tell(
                "admin session end", ["session": ended, "account": account, "sessions": count],
                text: "ended \(Wording.count(count, "session"))")
        }
    }
}
