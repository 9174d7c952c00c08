public import Foundation
public import TidemarkCloud
import TidemarkContainers
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// The outcome that a synchronisation would have, found on a copy of the container. The cloud is only read.
public struct SyncPreview: Sendable {
    /// The changes that would be applied here, in the order of history.
    public let fetched: [RecordChange]
    /// The conflicts that would be resolved, and how.
    public let conflicts: [LoggedConflict]
    /// The changes that would be sent then.
    public let toSend: [SyncIssue]
    /// The number of changes that would be sent in all.
    public let toSendCount: Int
    /// Records of the cloud that could not be imported, or not fully, among them conflicts that the policy `error` leaves to a person.
    public let deferred: [DeferredRecord]

    /// - Parameters:
    ///   - directory: A folder of the caller's own, in which the copy is made.
    ///   - policy: Resolves, by this policy, the conflicts that were left to a person.
    ///   - limit: The maximum number of changes of each kind that are listed.
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
