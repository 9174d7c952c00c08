public import Foundation
import GRDB
import Synchronization
public import TidemarkContainers
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// A container of records that is open for reading and writing, with a private and a shared store. As
/// `NSPersistentCloudKitContainer`.
///
/// ```swift
/// let journal = try PersistentContainer(named: "Journal")
/// try await journal.save(Destination(caption: "Senja", image: Asset(fileURL: photo)))
/// let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 10)
/// ```
///
/// A save is durable when the call returns. By default, new records go to the private store; records of the shared store stay
/// there. To detect changes that others have made to a record since it was loaded, edit it in an ``EditingContext``.
public actor PersistentContainer: RecordReading {
    private nonisolated let executor: StoreExecutor
    /// The queue on which the container runs. Its stores run there, too, so that a save needs no change of threads.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The container's directory.
    public nonisolated let directory: ContainerDirectory
    /// The stores that records are read from; not for programs.
    public nonisolated let recordSources: RecordSources
    nonisolated let stores: PerScope<RecordStore>
    nonisolated let sources: PerScope<RecordSource>
    nonisolated let changeBroadcaster: ChangeBroadcaster
    private nonisolated let notifier: StoreChangeNotifier
    private nonisolated let listener = LockedValue<StoreChangeListener?>(nil)
    private nonisolated let readersFollowOthers = Atomic(false)
    nonisolated let reporter = LockedValue<PermissionReporter?>(nil)

    /// The synchronisation of the container in this process.
    nonisolated let syncing = ContainerSyncing()
    /// The folder of a temporary container, which is deleted with the container.
    private nonisolated let temporaryFolder: TemporaryFolder?
    nonisolated let policy: CurrentMergePolicy

    /// The merge policy for saves and types that have none of their own.
    public var mergePolicy: MergePolicy { policy.value }
    /// The relationships that the program has declared, by the names of types and fields.
    var declaredRelationships: [String: [String: RelationshipSchema]] = [:]
    /// The author of the container's transactions in history.
    public nonisolated let author: String

    /// Opens a container, and creates it if it is missing.
    ///
    /// - Parameters:
    ///   - name: The container's name. Its directory is `NAME.tidemark`.
    ///   - location: The place of the directory.
    ///   - environment: The environment of a container that is created.
    ///   - author: The author of the container's transactions in history.
    ///   - role: The kind of this process, which other processes see in its notifications.
    ///   - mergePolicy: The merge policy for saves and types that have none of their own.
    /// - Throws: ``StoreError`` `notFound` when the container has lost a store; `notAStore`, `newerFormat`, `cannotCreate`,
    ///   `untrusted`, `busy`, `corrupt` or `io`.
    public init(
        named name: String, at location: StoreLocation = .default, environment: StoreEnvironment = .development,
        author: String = ProcessInfo.processInfo.processName, role: StoreChangeNotifier.Role = .app,
        mergePolicy: MergePolicy = .mergeByPropertyObjectTrump
    ) throws(StoreError) {
        let url = try location.containerURL(named: name, makingFolder: true)
        try self.init(openingOrCreatingAt: url, environment: environment, author: author, role: role, mergePolicy: mergePolicy)
    }

    /// Opens the container at a place, and creates it if it is missing.
    ///
    /// - Parameter new: Records the container if this creates it, also when opening its stores fails.
    /// - Throws: As ``init(named:at:environment:author:role:mergePolicy:)``.
    package init(
        openingOrCreatingAt url: URL, environment: StoreEnvironment = .development, author: String,
        role: StoreChangeNotifier.Role, mergePolicy: MergePolicy = .mergeByPropertyObjectTrump, new: NewContainer? = nil
    ) throws(StoreError) {
        let opened = try ContainerDirectory.withContainer(openingOrCreatingAt: url, environment: environment) {
            directory throws(StoreError) in
            if directory.isNew { new?.note(directory) }
            return try Opened(directory, role: role)
        }
        self.init(opened, author: author, mergePolicy: mergePolicy)
    }

    /// Opens a container whose directory is known.
    ///
    /// - Throws: As ``init(named:at:environment:author:role:mergePolicy:)``.
    public init(
        directory: ContainerDirectory, author: String = ProcessInfo.processInfo.processName,
        role: StoreChangeNotifier.Role = .app,
        mergePolicy: MergePolicy = .mergeByPropertyObjectTrump
    ) throws(StoreError) {
        self.init(try Opened(directory, role: role), author: author, mergePolicy: mergePolicy)
    }

    /// A container's stores, open.
    private struct Opened {
        let directory: ContainerDirectory
        let executor = StoreExecutor(label: "tidemark.container")
        let notifier: StoreChangeNotifier
        let stores: PerScope<RecordStore>

        init(_ directory: ContainerDirectory, role: StoreChangeNotifier.Role) throws(StoreError) {
            self.directory = directory
            let notifier = try StoreChangeNotifier(container: directory, role: role)
            self.notifier = notifier
            // The stores run on the container's queue, so that a save changes threads only once.
            stores = PerScope(
                private: try RecordStore(container: directory, scope: .private, notifier: notifier, executor: executor),
                shared: try RecordStore(container: directory, scope: .shared, notifier: notifier, executor: executor))
        }
    }

    /// Opens a container whose folder is deleted when the container is closed or deallocated.
    ///
    /// - Throws: As ``init(named:at:environment:author:role:mergePolicy:)``.
    init(
        in folder: TemporaryFolder, environment: StoreEnvironment, author: String, mergePolicy: MergePolicy
    ) throws(StoreError) {
        let directory = try ContainerDirectory(openingOrCreatingAt: folder.container, environment: environment)
        self.init(try Opened(directory, role: .app), author: author, mergePolicy: mergePolicy, temporaryFolder: folder)
    }

    private init(_ opened: Opened, author: String, mergePolicy: MergePolicy, temporaryFolder: TemporaryFolder? = nil) {
        self.temporaryFolder = temporaryFolder
        directory = opened.directory
        executor = opened.executor
        notifier = opened.notifier
        stores = opened.stores
        self.author = author
        policy = CurrentMergePolicy(mergePolicy)
        changeBroadcaster = ChangeBroadcaster()
        sources = stores.map { RecordSource($0) }
        recordSources = RecordSources(all: sources.all)
    }

    /// Starts to listen to other processes, at the first call. A container that needs no changes of others uses no watch of the
    /// system, and does not wake up when others write.
    ///
    /// - Throws: ``StoreError`` `io` when the system has no more watches.
    nonisolated func listen() throws(StoreError) {
        try listener.withLock { listener throws(StoreError) in
            guard listener == nil else { return }
            listener = try StoreChangeListener(container: directory, ignoring: notifier) { [weak self] in
                guard let self else { return }
                changeBroadcaster.post(isOwn: false)
                if readersFollowOthers.load(ordering: .acquiring) { refreshReaders() }
            }
        }
    }

    /// Makes GRDB's observations read the changes of other processes.
    private nonisolated func refreshReaders() {
        // The next notification repeats a refresh that fails. A read before that throws the same error.
        Task { [stores] in for store in stores.all { try? await store.refreshAfterExternalChanges() } }
    }

    /// Sets the merge policy for saves and types that have none of their own.
    public func setMergePolicy(_ policy: MergePolicy) { self.policy.value = policy }

    // Closing

    /// Closes the container: ends its synchronisation, the streams of its changes and events, and the connections to its stores.
    /// Call it before the container's files are replaced or deleted. Otherwise a container closes when it is deallocated.
    ///
    /// Afterwards reads, saves and observations throw ``StoreError`` `closed`. Snapshots can still be read. A second call does
    /// nothing. A temporary container is deleted.
    ///
    /// - Throws: ``StoreError`` `busy` while a read is running.
    public func close() async throws(StoreError) {
        await syncing.remove(closing: true)?.stop()
        listener.withLock { listener in
            listener?.close()
            listener = nil
        }
        for scope in ContainerDirectory.scopes { try closeStore(scope) }
        changeBroadcaster.finish()
        syncing.events.finish()
        syncing.downloads.finish()
        temporaryFolder?.remove()
    }

    private func closeStore(_ scope: StoreScope) throws(StoreError) {
        let result = stores[scope].assumeIsolated { store in
            Result { () throws(StoreError) in try store.close() }
        }
        try result.get()
    }

    /// Closes the container and deletes it permanently, with all its records and files; see `ContainerDirectory.destroy()`.
    /// Records in the cloud stay there.
    ///
    /// - Throws: ``StoreError`` as ``close()`` and `ContainerDirectory.destroy()`.
    public func destroy() async throws(StoreError) {
        try await close()
        if temporaryFolder == nil { try directory.destroy() }
    }

    /// Deletes a container that is not open, permanently. As
    /// `NSPersistentStoreCoordinator.destroyPersistentStore(at:type:options:)`.
    ///
    /// - Throws: ``StoreError`` `notFound` if there is no container of that name; `busy`; `io`.
    public static func destroy(named name: String, at location: StoreLocation = .default) throws(StoreError) {
        try ContainerDirectory.destroy(at: location.containerURL(named: name))
    }

    // Saving

    /// Saves a record as it is, whatever the store has by then: inserts it, or gives it these values. Fields that the Swift type does not
    /// have stay.
    ///
    /// - Parameter scope: The store of a new record; an existing record stays in its store. A new record in the shared store must
    ///   belong to a share: save it with ``save(_:in:)-(_,Share)``.
    /// - Throws: ``StoreError`` `invalid` for a new record in the shared store without a share; the errors of the record's hooks,
    ///   such as ``Record/validate()``; `EncodingError`; ``StoreError`` `invalid` for an asset or a value that can't be stored,
    ///   `schema` in production, `diskFull`, `busy`, `io`. Then nothing is saved.
    @discardableResult
    public func save<R: Record>(_ record: R, in scope: StoreScope = .private) throws -> SaveResult {
        try save([record], in: scope)
    }

    /// Saves records. Each store saves all of its records or none. The shared store is first: if it refuses a record, nothing is
    /// saved. If the private store fails afterwards, its ``StoreError`` says so.
    ///
    /// - Complexity: O(n log n). Records that the store has with the same values are compared and not written. Other saves wait for
    ///   a save of many records; `saveInBatches(_:batchSize:in:progress:)` lets them run between its batches.
    @discardableResult
    public func save<R: Record>(_ records: [R], in scope: StoreScope = .private) throws -> SaveResult {
        try save(records, in: scope, share: nil).result
    }

    /// Deletes a record, whatever version the store has by then. A missing record is no error.
    @discardableResult
    public func delete<R: Record>(_ record: R) throws -> SaveResult {
        try delete(R.self, named: record.recordName)
    }

    /// Deletes the record of a name.
    @discardableResult
    public func delete<R: Record>(_ type: R.Type, named name: String) throws -> SaveResult {
        try recordSources.claims.check(type)
        let record = RecordName(type: R.recordType, name: name)
        let scope = try home(of: record, default: .private)
        let policy = policies(nil, types: [R.recordType: R.mergePolicy])
        return try write { _ in
            [
                StoreSave(
                    scope: scope, edits: [RecordEdit(record: record, base: .any, values: nil, fields: [])], schemas: [],
                    policy: policy,
                    validate: { db, source, _ in
                        try StoredRecords(db, source).record(R.self, named: name)?.validateForDelete()
                    })
            ]
        }
    }

    // Observations in SQL

    /// Makes observations in SQL, which a program creates with GRDB and ``reader(_:)``, follow the writes of other processes.
    /// ``RecordObserving/observe(_:where:sortedBy:limit:in:)`` and ``changes(since:withOwn:)`` follow them without this call.
    ///
    /// - Throws: ``StoreError`` `io` when the system has no more watches to give.
    public nonisolated func followOthers() throws(StoreError) {
        let wasFollowing = readersFollowOthers.exchange(true, ordering: .acquiringAndReleasing)
        try listen()
        // Read the changes from before the call.
        if !wasFollowing { refreshReaders() }
    }
}
