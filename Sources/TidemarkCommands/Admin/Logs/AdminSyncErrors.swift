import ArgumentParser
import TidemarkAdministration
import TidemarkCloudEngine
import TidemarkModel

struct AdminSyncErrors: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync-errors", abstract: "Shows what devices were refused, and why.",
        discussion: """
            Each line shows the time, the operation, the container, the environment, the account, the device, the record, the error, \
            how often the server answered with it, and the reason. Equal errors of a device are one line, with the time of the last. A \
            device without a name is identified by its session. CONFLICT is no fault: the device merges and sends again. A line says so \
            where the account has saved the record since, or has access or room again. A failed sign-in shows the account that was \
            tried, if there is one, and the device that the request named. The cloud keeps the newest 500 errors of accounts in an \
            environment of a container, 50 of each account, 25 of refused sign-ins, and 100 of other requests without an account, \
            for 7 days; a server writes them once a second.

            Examples:
              tidemark admin sync-errors --data ~/cloud
              tidemark admin sync-errors --account anna@example.org --since 24h --data ~/cloud
              tidemark admin sync-errors --container journal --environment production --json --data ~/cloud
            """)

    @Option(
        help: ArgumentHelp(
            "Only what was answered since: a time such as 2026-11-21T08:00:00Z, a day, or 30s, 30m, 24h, 7d.", valueName: "time"))
    var since: Since?

    @Option(help: ArgumentHelp("Only errors of this account.", valueName: "address"))
    var account: String?

    @Option(help: ArgumentHelp("Only errors in this container.", valueName: "name"))
    var container: String?

    @Option(help: "Only errors in this environment: development or production.")
    var environment: StoreEnvironment?

    @Option(help: ArgumentHelp("The maximum number of lines, newest first.", valueName: "n"))
    var limit = 1_000

    @OptionGroup var listing: AdminListing

    private struct Line: Encodable {
        let at, firstAt, operation, container, environment: String
        let account, database, zone, recordType, record: String?
        let code, reason: String
        let count: Int
        let savedSince, session, device, triedAccount: String?
        let hasAccessAgain: Bool

        init(_ known: Administration.KnownSyncFailure) {
            func text(_ text: String) -> String? { text.isEmpty ? nil : text }
            let failure = known.failure
            (at, firstAt) = (Timestamp.text(microseconds: failure.at), Timestamp.text(microseconds: failure.firstAt))
            (operation, container, environment) = (failure.operation, failure.container, failure.environment)
            (account, database, zone) = (text(known.account), failure.scope?.name, text(failure.zone))
            (recordType, record) = (text(failure.recordType), text(failure.record))
            (code, reason, count) = (failure.code, failure.reason, failure.count)
            (session, device) = (text(known.device?.session ?? ""), text(known.device?.name ?? ""))
            (triedAccount, hasAccessAgain) = (known.triedAccount, known.hasAccessAgain)
            if case .savedSince(let time) = known.record {
                savedSince = Timestamp.text(microseconds: time)
            } else {
                savedSince = nil
            }
        }

        /// The reason, and whether the failure is over.
        var told: String {
            if hasAccessAgain {
                return "\(code == SyncFailure.quotaExceeded ? "has room again" : "access restored since"): \(reason)"
            }
            return savedSince.map { "saved since, at \($0): \(reason)" } ?? reason
        }

        /// The device that was refused, by its name or its session.
        var shownDevice: String { device ?? session ?? "" }

        /// The record with its type. A type with which the record's name begins is not repeated.
        var named: String {
            guard let recordType, let record else { return recordType ?? record ?? "" }
            return "\(recordType):\(RecordName(type: recordType, name: record).shortName)"
        }
    }

    func validate() throws {
        guard (1...1_000_000).contains(limit) else { throw ValidationError("--limit takes a number from 1 to 1000000") }
    }

    func run() async throws {
        try await reportingErrors {
            let administration = try await listing.place.administration()
            let found = try await administration.syncFailures(
                in: container, environment, account: account, since: since?.time ?? 0, limit: limit)
            // The oldest failure first, as in a log.
            try listing.show(
                found.reversed().map { Line($0) },
                columns: [
                    "at", "operation", "container", "environment", "account", "device", "record", "error", "times", "reason",
                ], cutsLast: false, none: "no device was refused anything for that"
            ) { line in
                [
                    line.at, line.operation, line.container, line.environment, line.account ?? line.triedAccount ?? "",
                    line.shownDevice, line.named, line.code, Wording.count(line.count), line.told,
                ]
            }
        }
    }
}
