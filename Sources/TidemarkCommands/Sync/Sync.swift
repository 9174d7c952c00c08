import ArgumentParser
import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

struct Sync: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Synchronises a container with its cloud: imports remote changes and exports local ones.",
        discussion: """
            Exit codes: 0 all changes are exported and imported (the command names records that could not be imported fully); 69 no \
            account is signed in, the account is switched off, or the server reports an error that needs an administrator; 75 a record \
            could not be exported ('tidemark status' explains it), a server could not be reached, or another process synchronises the \
            container (134410).

            Examples:
              tidemark sync MyJournal.tidemark
              tidemark sync MyJournal.tidemark --watch --json
              tidemark sync MyJournal.tidemark --dry-run
              tidemark sync MyJournal.tidemark --refetch
              tidemark sync MyJournal.tidemark --assets up-to:64KiB --asset-limit 2GB
            """)

    @Argument(help: "The container.")
    var container: String

    @Flag(help: "Keeps synchronising as local or remote changes occur, until Ctrl-C.")
    var watch = false

    @Flag(help: "Shows what would be imported, resolved and exported; changes nothing.")
    var dryRun = false

    @Flag(help: "Fetches everything again, not only what has changed since the last time. Changes that wait are kept and sent.")
    var refetch = false

    @Option(
        help: ArgumentHelp(
            "How conflicts are resolved, this time, those that were left before among them: \(NamedPolicy.allValueStrings.joined(separator: ", ")). (default: the account's)",
            valueName: "policy"))
    var mergePolicy: NamedPolicy?

    @Option(
        help: ArgumentHelp(
            "Which contents of assets come with their records: all, on-demand (none; 'tidemark assets download' fetches them), or up-to:BYTES, such as up-to:64KiB. (default: all)",
            valueName: "which"))
    var assets: AssetChoice?

    @Option(
        help: ArgumentHelp(
            "How many bytes of contents stay in the container, such as 2GB: afterwards, contents that the cloud has are evicted, the least recently used first. (default: no limit)",
            valueName: "bytes"))
    var assetLimit: ByteCount?

    @Option(
        help: ArgumentHelp(
            "How many seconds the command retries while the cloud does not answer; a terminal shows each retry. If the option is given, a stalled connection is also closed after this time, and after 3 seconds at the earliest. (default: 10)",
            valueName: "seconds"))
    var patience: Double?

    /// How long the command tries again: seconds.
    private var retrying: Double { patience ?? 10 }

    /// How long a connection may be silent. `nil` for the usual limits, which give a busy server more time than a person at a
    /// terminal has.
    private var silence: Duration? { patience.map { .seconds(max(3, $0)) } }

    @Option(help: "Shows a progress bar on standard error: auto (on a terminal), always or never.")
    var progress: ProgressMode = .auto

    @Flag(
        help:
            "Prints JSON: the report as one object, with --watch an object for each event, and {\"refused\":…}, {\"deferred\":…} or {\"reverted\":…} for a record that was not sent, was not imported or was not allowed, and {\"begun\":…} or {\"ended\":…} for a share of another owner."
    )
    var json = false

    func validate() throws {
        if watch, dryRun { throw ValidationError("--watch and --dry-run exclude each other") }
        if refetch, dryRun { throw ValidationError("--refetch and --dry-run exclude each other") }
        guard retrying >= 0, retrying <= 86_400 else { throw ValidationError("--patience takes a number of seconds") }
    }

    struct Report: Encodable {
        struct Failure: Encodable { let code: Int, reason: String }
        let imported, exported, conflicts, pending, blocked, deferred, refused: Int
        /// Nothing waits to be sent, and nothing failed.
        let isComplete: Bool
        /// Nothing failed, and everything that the cloud has is here, whole.
        let isFullyImported: Bool
        let failure: Failure?
        /// The shares of others that are new, and those that have ended.
        let begun, ended: [ShareLine]?

        init(_ report: SyncReport, _ news: ShareNews? = nil) {
            (begun, ended) = (news?.begun.map(ShareLine.init), news?.ended.map(ShareLine.init))
            (imported, exported, conflicts) = (report.imported, report.exported, report.conflicts)
            (pending, blocked) = (report.outbox.pending, report.outbox.blocked)
            (deferred, refused) = (report.deferred, report.refused)
            (isComplete, isFullyImported) = (report.isComplete, report.failure == nil && report.deferred == 0)
            failure = report.failure.map { .init(code: $0.code, reason: $0.reason) }
        }
    }

    func run() async throws {
        try await reportingErrors {
            let directory = try containerToWrite(container, isDryRun: dryRun)
            let access = try await CloudAccess(directory, silence: silence)
            if dryRun { return try await preview(access) }
            let engine = try access.sync(
                policy: mergePolicy?.policy, assets: assets?.downloads ?? .all, assetLimit: assetLimit?.bytes)
            let reading = try SyncReading(directory)
            if refetch { try await engine.refetch() }
            if watch { return try await watch(engine, access, reading) }
            let before = try reading.sharesOfOthers()
            let (mode, patience) = (progress, retrying)
            let showing = Task {
                let bar = ProgressBar(mode)
                var tries = RetryNews(patience: patience)
                for await var event in engine.events {
                    if let failure = event.failure { event.failure = access.addingRemedy(failure) }
                    if mode.isShown, let line = tries.line(event) {
                        bar.finish()
                        Output.error(line)
                    }
                    bar.show(event)
                }
                bar.finish()
            }
            let command = self
            let work = Task { try await command.synchronize(engine) }
            let interruption = Interruption { work.cancel() }
            defer { interruption.stop() }
            let result = await work.result
            showing.cancel()
            await showing.value
            do {
                try show(access.addingRemedy(result.get()), ShareNews(from: before, to: reading.sharesOfOthers()))
            } catch is CancellationError {
                throw ending(
                    "interrupted; what the other side has acknowledged stays, and the next sync goes on from there", .interrupted)
            }
        }
    }

    /// The policy for conflicts that were left to a person earlier: that of `--merge-policy`, if it resolves conflicts.
    private var resolvingPolicy: MergePolicy? {
        guard let policy = mergePolicy?.policy else { return nil }
        if case .error = policy { return nil }
        return policy
    }

    /// Synchronises once. With a named policy, it also resolves the conflicts that were left earlier, and sends the results.
    private func synchronize(_ engine: ContainerSync) async throws -> SyncReport {
        let report = try await engine.sync(patience: .seconds(retrying))
        guard let policy = resolvingPolicy, report.deferred > 0, report.failure == nil else { return report }
        let resolved = try await engine.resolveConflicts(policy: policy)
        guard !resolved.isEmpty else { return report }
        var next = try await engine.sync(patience: .seconds(retrying), isContinued: true)
        next.conflicts += resolved.count
        return SyncReport(report, then: next)
    }

    private func show(_ report: SyncReport, _ news: ShareNews) throws {
        if json {
            try Output.json(Report(report, news))
        } else {
            try Self.tell(report, isRefetched: refetch)
            for line in news.lines { try Output.line(line) }
        }
        if let failure = Self.failure(report) { throw failure }
    }

    /// - Parameter isRefetched: Whether all records were fetched again. Records that were the same here are not counted.
    static func tell(_ report: SyncReport, isRefetched: Bool = false) throws {
        let fetched = Wording.count(report.imported, "record")
        var text = isRefetched ? "fetched everything again (\(fetched) changed)" : "fetched \(fetched)"
        text += ", sent \(Wording.count(report.exported))"
        if report.conflicts > 0 { text += ", resolved \(Wording.count(report.conflicts, "conflict"))" }
        try Output.line(text)
        if report.deferred > 0 {
            try Output.line(
                "\(Wording.count(report.deferred, "record")) of the cloud could not be imported fully; see 'tidemark status'")
        }
        if report.refused > 0 {
            try Output.line(
                "\(Wording.count(report.refused, "save")) refused by the cloud and reverted; see 'tidemark refused'")
        }
    }

    /// Reports a synchronisation that was not completed, and returns the exit code; `nil` if it was completed.
    static func failure(_ report: SyncReport) -> ExitCode? {
        if let failure = report.failure { return ending("\(failure.code): \(failure.reason)", failure.exitStatus) }
        guard report.outbox.pending > 0 else { return nil }
        return ending(
            "\(Wording.count(report.outbox.pending, "change")) could not be sent; 'tidemark status' says why", .temporaryFailure)
    }

    private func watch(_ engine: ContainerSync, _ access: CloudAccess, _ reading: SyncReading) async throws {
        let command = self
        let work = Task {
            if command.resolvingPolicy != nil { _ = try await command.synchronize(engine) }
            try await engine.run()
        }
        let showing = Task {
            do {
                var news = SyncNews()
                _ = try news.change(of: reading.sharesOfOthers())
                let shared = engine.sharedEngine.history
                for await ended in engine.events where ended.end != nil {
                    var event = ended
                    if let failure = event.failure { event.failure = access.addingRemedy(failure) }
                    // A cloud that can't be reached, or does not know the account, concerns both stores.
                    let isOfBoth = event.kind == .setup || event.failure?.isPassing ?? (event.records == 0 && event.bytes == 0)
                    let scope: StoreScope = event.store == shared ? .shared : .private
                    try command.tell(EventLine(event, of: isOfBoth ? nil : scope), of: event, reading, &news)
                }
            } catch {
                // Standard output is closed.
                work.cancel()
                throw error
            }
        }
        let interruption = Interruption { work.cancel() }
        defer { interruption.stop() }
        let result = await work.result
        showing.cancel()
        try await showing.value
        do {
            try result.get()
        } catch is CancellationError {}
    }

    /// Prints the news: of an event that has ended, and of records that wait since.
    private func tell(_ line: EventLine, of event: ContainerEvent, _ reading: SyncReading, _ news: inout SyncNews) throws {
        if news.tells(event) {
            if json { try Output.json(line) } else { try Output.line(line.text) }
        }
        // If the stores can't be read now, the news is printed with the next event.
        guard let refused = try? reading.outbox().blocked > 0 ? reading.syncIssues(isRefused: true) : [],
            let deferred = try? reading.deferredLines(), let saves = try? reading.refused(),
            let shares = try? reading.sharesOfOthers(),
            let known = try? reading.knownFields()
        else { return }
        let change = news.change(of: shares)
        if json {
            for share in change.begun { try Output.json(["begun": ShareLine(share)]) }
            for share in change.ended { try Output.json(["ended": ShareLine(share)]) }
        } else {
            for line in change.lines { try Output.line(line) }
        }
        for entry in news.new(refused) {
            let line = SyncIssueLine(entry)
            if json { try Output.json(["refused": line]) } else { try Output.line("not sent: \(line.text)") }
        }
        let new = Set(news.new(deferred.map { $0.record }))
        for (record, line) in deferred where new.contains(record) {
            if json { try Output.json(["deferred": line]) } else { try Output.line("not imported: \(line.text)") }
        }
        for save in news.new(saves) {
            let line = try RefusedLine(save, known)
            if json { try Output.json(["reverted": line]) } else { try Output.line("reverted: \(line.text)") }
        }
    }

    // Dry run

    private struct Preview: Encodable {
        struct Change: Encodable { let type, record, kind: String, fields: [String] }
        struct Conflict: Encodable {
            let type, record: String
            let field: String?
            let ancestor, local, store: ConflictValue?
            let winner, policy: String
        }
        let fetched: [Change]
        let conflicts: [Conflict]
        let toSend: [Change]
        let toSendCount: Int
        let deferred: [String]
        /// The conflicts among them that are left to a person.
        let left: [DeferredLine]
    }

    private func preview(_ access: CloudAccess) async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "tidemark-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // If the copy can't be removed from the temporary folder, the preview has not failed.
        defer { try? FileManager.default.removeItem(at: folder) }
        let preview = try await SyncPreview(
            of: access.directory, databases: access.databases, configuration: access.configuration(policy: mergePolicy?.policy),
            resolvingBy: resolvingPolicy, in: folder)
        let left = preview.deferred.filter { $0.reason == .conflict || $0.reason == .deletion }
        let known = try SyncReading(access.directory).knownFields()
        let report = Preview(
            fetched: preview.fetched.map {
                .init(type: $0.record.type, record: $0.record.name, kind: "\($0.kind)", fields: $0.fields)
            },
            conflicts: preview.conflicts.map {
                let field = known[$0.type, $0.field]
                return .init(
                    type: $0.type, record: $0.record, field: $0.field, ancestor: ConflictValue($0.ancestor, of: field),
                    local: ConflictValue($0.local, of: field), store: ConflictValue($0.store, of: field),
                    winner: $0.winner.rawValue,
                    policy: $0.policy)
            },
            toSend: preview.toSend.map { .init(type: $0.type, record: $0.record, kind: "\($0.kind)", fields: $0.fields) },
            toSendCount: preview.toSendCount, deferred: preview.deferred.map(\.name), left: left.map { DeferredLine($0) })
        if json { return try Output.json(report) }
        func list(_ title: String, _ changes: [Preview.Change], of count: Int) throws {
            try Output.line("\(title): \(Wording.count(count, "change"))")
            for change in changes.prefix(20) {
                let fields = change.fields.isEmpty ? "" : "  (\(change.fields.joined(separator: ", ")))"
                try Output.line("  \(change.kind) \(RecordName(type: change.type, name: change.record).title)\(fields)")
            }
            if count > 20 { try Output.line("  and \(Wording.count(count - min(20, changes.count))) more") }
        }
        try list("would be fetched", report.fetched, of: report.fetched.count)
        try Output.line("would be resolved: \(Wording.count(report.conflicts.count, "conflict"))")
        for conflict in preview.conflicts.prefix(20) { try Output.line("  \(Conflicts.text(conflict, known))") }
        if !left.isEmpty {
            try Output.line("would be left: \(Wording.count(left.count, "conflict"))")
            for line in report.left.prefix(20) { try Output.line("  \(line.text)") }
            if left.count > 20 { try Output.line("  and \(Wording.count(left.count - 20)) more") }
        }
        try list("would be sent", report.toSend, of: report.toSendCount)
        let others = preview.deferred.filter { !left.contains($0) }.map(\.name)
        if !others.isEmpty { try Output.line("could not be imported fully: \(others.prefix(20).joined(separator: ", "))") }
    }
}
