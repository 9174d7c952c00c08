public import Logging
public import TidemarkCloud
public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

extension SyncEngine {
    /// Opens a container's store for synchronisation. A program that has the container open calls `PersistentContainer.syncEngine` instead,
    /// so that the process has one connection that writes.
    ///
    /// - Throws: ``ContainerEvent/Failure`` 134410 when another process synchronises it; ``StoreError``.
    public init(
        container: ContainerDirectory, scope: StoreScope = .private, database: any CloudDatabase,
        configuration: SyncConfiguration = SyncConfiguration(), environment: SyncEnvironment = .system,
        log: Logger = Logger(label: "tidemark.sync")
    ) throws {
        let lock = try SyncLock(container)
        try self.init(
            store: RecordStore(container: container, scope: scope, notifier: nil, now: environment.now), database: database,
            configuration: configuration, environment: environment, log: log, lock: lock)
    }
}
