import ArgumentParser
import Foundation
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the records that are not synchronised, and the reasons.",
        discussion: """
            For each record that differs from the cloud's copy: the time of the change, the number of attempts, the cloud's error, the \
            time of the next attempt, and the reason for the wait.

            --check answers one question: has the container what the cloud has, as far as it knows? It prints what is missing, and exits \
            with 0 if nothing is, else with 75. It does not ask the cloud: synchronise first. It names the fields whose values are left in the \
            cloud because the container has no such field or one of another type, and counts their records; they come with the next sync once \
            there is a field of that name and type. It names the fields that were renamed or dropped here, too, with the number of records \
            of which the cloud had the value that was here then: the values stay there, and nothing is missing for that. If such a field is \
            made again, they come.

            Examples:
              tidemark status MyJournal.tidemark
              tidemark status MyJournal.tidemark --record senja
              tidemark status MyJournal.tidemark --all
              tidemark status MyJournal.tidemark --json
              tidemark sync MyJournal.tidemark && tidemark status MyJournal.tidemark --check
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: ArgumentHelp("One record.", valueName: "name"))
    var record: String?

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of records to list.", valueName: "n"))
    var limit: Int = 20

    @Flag(help: "Lists each record that was not imported; by default, records with the same reason are one line.")
    var all = false

    @Flag(help: "Prints what is missing for the container to be in sync with its cloud; the exit code is 75 if anything is.")
    var check = false

    @Flag(help: "Prints one JSON object.")
    var json = false

    /// The output of `--check`.
    private struct Check: Encodable {
        let isInSync: Bool
        let missing: [String]
        let ignoredFields: [String]
        let passedOver: [IgnoredField]
        let leftInCloud: [LeftField]
    }

    private struct Report: Encodable {
        let account: String?
        let initialImportComplete: Bool
        let pending, blocked, conflicts, refused: Int
        let records: [SyncIssueLine]
        let deferred: [DeferredLine]
        /// Why nothing can be sent now: the state of the account, and its switches.
        let obstacles: [Sync.Report.Failure]
        /// Why nothing was sent the last time.
        let lastFailure: EventLine?
        let lastEvents: [EventLine]
        let assets: AssetsReport

        /// Why queued changes, and those that wait for another try, are not sent; empty if there are none.
        var whyNothingGoes: [String] { records.contains { ["queued", "retry"].contains($0.state) } ? reasons : [] }

        /// The text on the changes to send, and on how many of them wait.
        var toBeSent: String {
            var parts: [String] = []
            if blocked > 0 { parts.append("\(Wording.count(blocked)) refused or waiting for a refused one") }
            let others = pending - blocked
            if others > 0, !reasons.isEmpty { parts.append("\(Wording.count(others)) held back, because nothing is sent") }
            let text = "to be sent: \(Wording.count(pending, "change"))"
            return parts.isEmpty ? text : "\(text): \(parts.joined(separator: ", "))"
        }

        private var reasons: [String] {
            if !obstacles.isEmpty { return obstacles.map { "nothing is sent: \($0.code): \($0.reason)" } }
            guard let lastFailure, let error = lastFailure.error else { return [] }
            return ["the last try to send failed at \(lastFailure.end ?? lastFailure.start): \(error.code): \(error.reason)"]
        }
    }

    func validate() throws {
        if limit < 0 { throw ValidationError("--limit takes a number from 0 on") }
        if check, record != nil { throw ValidationError("--check and --record exclude each other") }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let reader = try SyncReading(directory)
            if check { return try answerCheck(SyncStatus(of: directory), reader) }
            let record = try record.map { try directory.recordName($0) }
            if let record, try !reader.hasRecord(named: record), try reader.syncIssues(record: record, limit: 1).isEmpty,
                try !reader.deferredRecords().contains(where: { $0.name == record })
            {
                throw StoreError(.notFound, "there is no record '\(record)', and none that was deleted waits to be told of")
            }
            let report = try look(reader, record, AssetsReport(AssetInventory(of: directory)))
            if json { return try Output.json(report) }
            if record != nil { return try tellOne(report, remedies(reader)) }
            try Output.line("account: \(report.account ?? "no account is signed in")")
            try Output.line("first import: \(report.initialImportComplete ? "complete" : "not complete")")
            try Output.line(report.toBeSent)
            let known = try remedies(reader)
            for entry in report.records {
                for line in entry.lines(known) { try Output.line("  \(line)") }
            }
            for why in report.whyNothingGoes { try Output.line("  \(why)") }
            if report.pending > report.records.count, limit > 0 {
                try Output.line("  and \(Wording.count(report.pending - report.records.count)) more")
            }
            try list(report.deferred, known)
            if report.conflicts > 0 {
                try Output.line("conflicts resolved: \(Wording.count(report.conflicts)); see 'tidemark conflicts'")
            }
            if report.refused > 0 {
                try Output.line("refused and reverted: \(Wording.count(report.refused)); see 'tidemark refused'")
            }
            if report.assets.downloaded + report.assets.notDownloaded > 0 { try Output.line("contents: \(report.assets.text)") }
            for event in report.lastEvents { try Output.line(event.text) }
        }
    }

    private func remedies(_ reader: SyncReading) throws -> FieldRemedies {
        let settings = try reader.accountSettings()
        return FieldRemedies(path: container, cloudContainer: settings.cloud == nil ? nil : settings.cloudContainer)
    }

    /// Prints the deferred records, those with the same reason as one line, and then the remedies.
    private func list(_ deferred: [DeferredLine], _ remedies: FieldRemedies) throws {
        struct Reason: Hashable {
            let type, cause: String
        }
        var (order, counts): ([Reason], [Reason: Int]) = ([], [:])
        for line in deferred {
            let reason = Reason(type: line.type, cause: line.commonCause)
            if counts[reason] == nil { order.append(reason) }
            counts[reason, default: 0] += 1
        }
        if all {
            for line in deferred { try Output.line("  deferred: \(line.title): \(line.cause)") }
        } else {
            for reason in order {
                let count = counts[reason] ?? 0
                let one = deferred.first { $0.type == reason.type && $0.commonCause == reason.cause }
                let title = count == 1 ? one?.title ?? reason.type : "\(Wording.count(count)) records of \(reason.type)"
                try Output.line("  deferred: \(title): \(count == 1 ? one?.cause ?? reason.cause : reason.cause)")
            }
        }
        var told: Set<String> = []
        for line in deferred {
            for conflict in line.conflicts where told.insert("\(line.type).\(conflict.field) \(conflict.cloud)").inserted {
                for text in remedies.lines(conflict, of: line.type) { try Output.line("    \(text)") }
            }
        }
    }

    private func answerCheck(_ status: SyncStatus, _ reader: SyncReading) throws {
        let missing = status.obstacles.map(\.description)
        let (ignoredFields, left) = (try reader.ignoredFields(), try reader.leftFields())
        if json {
            try Output.json(
                Check(
                    isInSync: status.isInSync, missing: missing, ignoredFields: ignoredFields.map(\.name),
                    passedOver: ignoredFields, leftInCloud: left))
        } else if status.isInSync {
            try Output.line("in sync, as far as the container knows")
        } else {
            for line in missing { try Output.line(line) }
            for field in left { try Output.line(field.text) }
        }
        if !json, !ignoredFields.isEmpty, !status.obstacles.contains(.noAccount) {
            let count = Wording.count(ignoredFields.count, "field that was", "fields that were")
            let names = ignoredFields.map(\.text).joined(separator: ", ")
            try Output.line("passed over: the values of \(count) renamed or dropped here: \(names)")
        }
        if !status.isInSync { throw ExitCode(ExitStatus.temporaryFailure.rawValue) }
    }

    private func look(_ reader: SyncReading, _ record: String?, _ assets: AssetsReport) throws -> Report {
        let (outbox, settings) = (try reader.outbox(), try reader.accountSettings())
        let entries = try reader.syncIssues(record: record, limit: max(limit, record == nil ? 0 : 10)).map(SyncIssueLine.init)
        return Report(
            account: settings.email, initialImportComplete: try reader.initialImportIsComplete(), pending: outbox.pending,
            blocked: outbox.blocked, conflicts: try reader.conflictCount(), refused: try reader.refused().count,
            records: entries,
            deferred: try reader.deferredLines().map { $0.line }.filter { record == nil || $0.record == record },
            obstacles: settings.state.setupFailures.map { .init(code: $0.code, reason: $0.reason) },
            lastFailure: try reader.lastFailure().map { EventLine($0) },
            lastEvents: record == nil ? try reader.events(limit: 3).map { EventLine($0) } : [],
            assets: assets)
    }

    private func tellOne(_ report: Report, _ remedies: FieldRemedies) throws {
        for entry in report.records {
            for line in entry.lines(remedies) { try Output.line(line) }
        }
        for why in report.whyNothingGoes { try Output.line(why) }
        for line in report.deferred {
            try Output.line(
                "\(line.title) is deferred, as the cloud has it: \(line.cause)")
            for conflict in line.conflicts {
                for text in remedies.lines(conflict, of: line.type) { try Output.line("  \(text)") }
            }
        }
        guard report.records.isEmpty, report.deferred.isEmpty else { return }
        try Output.line(
            report.account == nil
                ? "it is not to be sent: no account is signed in" : "synchronised: the cloud has it as it is here")
    }
}
