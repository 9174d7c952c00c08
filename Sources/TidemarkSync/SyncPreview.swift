public import Foundation
public import TidemarkCloud
import TidemarkContainers
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// What a synchronisation would do: found out on a copy of the container, with a cloud that is only read.
public struct SyncPreview: Sendable {
    /// What would change here, in the order of history.
    public let fetched: [RecordChange]
    /// What would be resolved, and how.
    public let conflicts: [LoggedConflict]
    /// What would be sent then.
    public let toSend: [SyncIssue]
    /// How many that would be in all.
    public let toSendCount: Int
    /// Records of the cloud that could not be taken in, or not whole: conflicts that the policy `error` leaves to a person among them.
    public let deferred: [DeferredRecord]

    /// - Parameters:
    ///   - directory: A folder of the caller's own, in which the copy is made.
    ///   - policy: Resolves, by this policy, the conflicts that were left to a person.
    ///   - limit: So many changes of each kind are listed.
    /// - Throws: ``ContainerEvent/Failure`` when setting up would fail.
    public init(
        of container: ContainerDirectory, databases: CloudDatabases, configuration: SyncConfiguration = SyncConfiguration(),
        resolvingBy policy: MergePolicy? = nil, in directory: URL, limit: Int = 1000
    ) async throws {
        let copy = directory.appendingPathComponent("preview.tidemark", isDirectory: true)
        var backup = ContainerBackup(of: container, to: copy)
        backup.isOfRecordsOnly = true
        try backup.run()
        let scratch = try ContainerDirectory(openingAt: copy)
        let sync = try ContainerSync(container: scratch, databases: databases, configuration: configuration)
        defer { sync.close() }
        var (fetched, conflicts, deferred): ([RecordChange], [LoggedConflict], [DeferredRecord]) = ([], [], [])
        var (toSend, toSendCount): ([SyncIssue], Int) = ([], 0)
        for (scope, engine) in [(StoreScope.private, sync.privateEngine), (.shared, sync.sharedEngine)] {
            let reader = try StoreReader(container: scratch, scope: scope)
            let (token, conflictsBefore) = (try reader.historyToken(), try reader.conflictCount())
            try await engine.preview()
            if let policy { try await engine.resolveConflicts(policy: policy) }
            fetched += try reader.changes(since: token).transactions.flatMap(\.changes)
            conflicts += try reader.conflicts(limit: try reader.conflictCount() - conflictsBefore)
            toSend += try reader.syncIssues(limit: limit - toSend.count)
            toSendCount += try reader.outbox().pending
            deferred += try reader.deferredRecords()
        }
        (self.fetched, self.conflicts, self.deferred) = (fetched, conflicts, deferred)
        (self.toSend, self.toSendCount) = (toSend, toSendCount)
    }
}
