import GRDB
public import TidemarkContainers
public import TidemarkModel
public import TidemarkSQLite
public import TidemarkStore

/// A container that is open for reading only, for a widget, an extension or a viewer. It has no methods that write, takes no lock
/// for which a writer waits, and changes no byte, even while the app is writing or after it has crashed.
///
/// ``changes(since:)`` and observations include a shared store that is created after the container was opened. Fetches read it when
/// the container is opened again. When the container was moved or replaced, reading throws ``StoreError`` `moved`.
///
/// ```swift
/// let journal = try ReadOnlyContainer(named: "Journal", at: .group("group.com.example.journal"))
/// let newest = try await journal.fetchAll(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 3)
/// for try await change in journal.changes() { reload(change) }
/// ```
public struct ReadOnlyContainer: RecordReading {
    /// The container's directory.
    public let directory: ContainerDirectory
    /// The stores that records are read from; not for programs.
    public let recordSources: RecordSources
    let readers: [StoreReader]
    /// The reporter of the user's permissions for the container's records.
    public let permissions: PermissionReporter

    /// Opens the container of a name at a location.
    ///
    /// - Throws: ``StoreError`` `notFound` when there is none, `notAStore`, `newerFormat`, `untrusted`, `corrupt` or `io`.
    public init(named name: String, at location: StoreLocation = .default) throws(StoreError) {
        try self.init(directory: ContainerDirectory(openingAt: location.containerURL(named: name)))
    }

    /// Opens a container whose directory is known.
    public init(directory: ContainerDirectory) throws(StoreError) {
        self.directory = directory
        var readers = [try StoreReader(container: directory)]
        do {
            readers.append(try StoreReader(container: directory, scope: .shared))
        } catch {
            // A container in which nothing was shared may have no shared store.
            guard error.code == .notFound else { throw error }
        }
        self.readers = readers
        recordSources = RecordSources(all: readers.map { RecordSource($0) })
        permissions = PermissionReporter(recordSources) { () throws(StoreError) in
            ContainerNotifications(stream: try StoreChangeListener.notifications(at: directory))
        }
    }

    /// The history of a store; `nil` when the container has no such store.
    public func history(_ scope: StoreScope = .private) -> StoreReader? { readers.first { $0.scope == scope } }

    /// Returns the changes of other processes as they are committed.
    ///
    /// - Parameter token: The position to begin with: changes since then come first. `nil` begins with changes from now on.
    public func changes(since token: ContainerToken? = nil) -> ContainerChanges {
        let directory = directory
        return ContainerChanges(
            directory: directory, readers: readers,
            notifications: { () throws(StoreError) in try StoreChangeListener.notifications(at: directory) },
            own: [:],
            withOwn: true,
            start: token)
    }

    /// Returns the position after everything that is committed.
    public func historyToken() throws(StoreError) -> ContainerToken {
        var tokens: [StoreScope: HistoryToken] = [:]
        for reader in readers { tokens[reader.scope] = try reader.historyToken() }
        return ContainerToken(tokens: tokens)
    }
}
