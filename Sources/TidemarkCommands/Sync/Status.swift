import ArgumentParser
import Foundation
import TidemarkModel
import TidemarkStore

struct Status: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says what is not synchronised, and why.",
        discussion: """
            For each record that the cloud does not have as it is here: since when, how often it was tried, what the cloud said, when it \
            is tried again, and what it waits for.

            Examples:
              tidemark status MyJournal.tidemark
              tidemark status MyJournal.tidemark --record senja
              tidemark status MyJournal.tidemark --json
            """)

    @Argument(help: "The container.")
    var container: String

    @Option(help: ArgumentHelp("One record.", valueName: "name"))
    var record: String?

    @Option(help: ArgumentHelp("Lists so many records.", valueName: "n"))
    var limit: Int = 20

    @Flag(help: "Prints one JSON object.")
    var json = false

    private struct Report: Encodable {
        struct Entry: Encodable {
            let type, record, kind: String
            let fields: [String]
            let pendingSince: String?
            let attempts: Int
            let code, reason, lastTry, nextTry, waitsFor: String?
            let state: String
        }
        struct Kept: Encodable { let record, type, reason: String }
        let account: String?
        let initialImportComplete: Bool
        let pending, blocked, conflicts: Int
        let records: [Entry]
        let kept: [Kept]
        let lastEvents: [EventLine]
    }

    func validate() throws { if limit < 0 { throw ValidationError("--limit takes a number from 0 on") } }

    func run() async throws {
        try await reportingErrors {
            let directory = try ContainerDirectory(openingAt: fileURL(container, "the container"))
            let reader = try StoreReader(container: directory)
            if let record, try reader.record(named: record) == nil, try reader.ledger(record: record).isEmpty,
                try !reader.kept().contains(where: { $0.name == record })
            {
                throw StoreError(.notFound, "there is no record '\(record)', and none that was deleted waits to be told of")
            }
            let report = try look(reader)
            if json { return try Output.json(report) }
            if record != nil { return try tellOne(report) }
            try Output.line("account: \(report.account ?? "nobody is signed in")")
            try Output.line("first import: \(report.initialImportComplete ? "complete" : "not complete")")
            let blocked = report.blocked > 0 ? ", \(Wording.count(report.blocked)) of them refused or waiting" : ""
            try Output.line("to be sent: \(Wording.count(report.pending, "change"))\(blocked)")
            for entry in report.records { try Output.line("  \(text(entry))") }
            if report.pending > report.records.count, limit > 0 {
                try Output.line("  and \(Wording.count(report.pending - report.records.count)) more")
            }
            for kept in report.kept { try Output.line("  kept: \(kept.type) \(kept.record): \(kept.reason)") }
            if report.conflicts > 0 {
                try Output.line("conflicts settled: \(Wording.count(report.conflicts)); see 'tidemark conflicts'")
            }
            for event in report.lastEvents { try Output.line(event.text) }
        }
    }

    private func look(_ reader: StoreReader) throws -> Report {
        let (outbox, settings, state) = (try reader.outbox(), try reader.accountSettings(), try reader.syncState())
        func time(_ microseconds: Int64?) -> String? { microseconds.map { Timestamp.text(microseconds: $0) } }
        let entries = try reader.ledger(record: record, limit: max(limit, record == nil ? 0 : 10)).map { entry in
            Report.Entry(
                type: entry.type, record: entry.record, kind: "\(entry.kind)", fields: entry.fields,
                pendingSince: time(entry.pendingSince), attempts: entry.attempts, code: entry.code, reason: entry.reason,
                lastTry: time(entry.lastTry), nextTry: time(entry.nextTry), waitsFor: entry.waitsFor,
                state: entry.waitsFor != nil ? "waiting" : entry.code != nil ? "refused" : "queued")
        }
        return Report(
            account: settings.email, initialImportComplete: state.initialImportIsComplete, pending: outbox.pending,
            blocked: outbox.blocked, conflicts: try reader.conflictCount(), records: entries,
            kept: try reader.kept().filter { record == nil || $0.name == record }.map {
                .init(record: $0.name, type: $0.type, reason: Self.reason($0.reason))
            }, lastEvents: record == nil ? try reader.events(limit: 3).map { EventLine($0.event) } : [])
    }

    private static func reason(_ reason: KeptRecord.Reason) -> String {
        switch reason {
        case .schema: "the store lacks its type or some of its fields; it is taken in when they are there"
        case .asset: "a file that it names could not be fetched; the next sync tries again"
        case .name: "a record of another type has its name here; rename or delete that"
        case .conflict: "both sides changed it; settle it with 'tidemark conflicts settle'"
        case .deletion: "it was deleted in the cloud and edited here; settle it with 'tidemark conflicts settle'"
        }
    }

    private func tellOne(_ report: Report) throws {
        for entry in report.records { try Output.line(text(entry)) }
        for kept in report.kept { try Output.line("\(kept.type) \(kept.record) is kept as the cloud has it: \(kept.reason)") }
        guard report.records.isEmpty, report.kept.isEmpty else { return }
        try Output.line(
            report.account == nil ? "it is not to be sent: nobody is signed in" : "synchronised: the cloud has it as it is here")
    }

    private func text(_ entry: Report.Entry) -> String {
        var text = "\(entry.kind) \(entry.type) \(entry.record): \(entry.state)"
        if let since = entry.pendingSince { text += " since \(since)" }
        if let code = entry.code {
            text +=
                "; tried \(Wording.count(entry.attempts, "time")), last at \(entry.lastTry ?? "?"): \(code): \(entry.reason ?? "")"
        }
        if let waitsFor = entry.waitsFor { return text + "; goes when \(waitsFor) has gone" }
        if entry.code != nil { text += entry.nextTry.map { "; next try at \($0)" } ?? "; tried again when it is changed" }
        return text
    }
}
