import ArgumentParser
import Foundation
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

/// A time on the command line: a date, or how long ago it was.
struct Since: ExpressibleByArgument {
    /// Microseconds since 1970 UTC.
    let time: Int64

    init?(argument: String) {
        let units: [(Character, Int64)] = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)]
        if let last = argument.last, let unit = units.first(where: { $0.0 == last }) {
            guard let count = Int64(argument.dropLast()), (0...100_000).contains(count) else { return nil }
            time = Int64(Date().timeIntervalSince1970) * 1_000_000 - count * unit.1 * 1_000_000
            return
        }
        let style = Date.ISO8601FormatStyle()
        // A text in neither form is no time.
        let date = (try? style.parse(argument)) ?? (try? style.year().month().day().parse(argument))
        guard let date else { return nil }
        time = Int64(date.timeIntervalSince1970 * 1_000_000)
    }
}

struct AdminAudit: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "audit", abstract: "Shows sign-ins, changes of shares and administration of the cloud.",
        discussion: """
            Each line has the time, the action, the actor, the account, the address, the object and the result; --json adds what was \
            there before a change of administration, and what is there after it. Entries stay for 180 days and are never changed. A sign-in attempt for an unknown account has a digest of the typed text; equal texts have equal \
            digests.

            Examples:
              tidemark admin audit --data ~/cloud
              tidemark admin audit --since 24h --account anna@example.org --data ~/cloud
              tidemark admin audit --since 2026-11-01 --json --data ~/cloud
            """)

    @Option(
        help: ArgumentHelp(
            "Only what was done since: a time such as 2026-11-21T08:00:00Z, a day, or 30s, 30m, 24h, 7d.", valueName: "time"))
    var since: Since?

    @Option(help: ArgumentHelp("Only entries by or about this account.", valueName: "address"))
    var account: String?

    @Option(help: ArgumentHelp("Only entries of this container.", valueName: "name"))
    var container: String?

    @Option(help: ArgumentHelp("The maximum number of lines, newest first.", valueName: "n"))
    var limit = 1_000

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let at, action: String
        let actor, account, address, container, subject: String?
        let outcome: String
        let before, after: String?

        /// - Parameter addresses: The accounts' addresses, by their identifiers.
        init(_ entry: AuditEntry, _ addresses: [String: String]) {
            func text(_ text: String) -> String? { text.isEmpty ? nil : addresses[text] ?? text }
            at = Timestamp.text(microseconds: entry.at)
            (action, outcome) = (entry.event.action.rawValue, entry.event.outcome)
            (actor, account) = (text(entry.event.actor), text(entry.event.account))
            (before, after) = (text(entry.event.before), text(entry.event.after))
            (address, container, subject) = (text(entry.event.address), text(entry.event.container), text(entry.event.subject))
        }
    }

    func validate() throws {
        guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit takes a number from 1 to 1000000") }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            let addresses = try await administration.cloud.addresses()
            let entries = try await administration.auditLog(
                container: container, account: account, since: since?.time ?? 0, limit: limit)
            // The oldest entry first, as in a log.
            try listing.show(
                entries.reversed().map { Line($0, addresses) },
                columns: ["at", "action", "by", "account", "from", "container", "to", "outcome"], cutsLast: false,
                none: "nothing is in the audit log for that"
            ) { line in
                [
                    line.at, line.action, line.actor ?? "", line.account ?? "", line.address ?? "", line.container ?? "",
                    line.subject ?? "", line.outcome,
                ]
            }
        }
    }
}

extension CredentialStore {
    /// The user who runs the command, as the audit log names them.
    static var systemUser: String {
        let name = getpwuid(geteuid()).flatMap { $0.pointee.pw_name }.map { String(cString: $0) } ?? String(geteuid())
        // The user who called sudo is named as well.
        let before = ProcessInfo.processInfo.environment["SUDO_USER"].map { " (sudo by \($0))" } ?? ""
        return "user:\(name)\(before)"
    }
}
