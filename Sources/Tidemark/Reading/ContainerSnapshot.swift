import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite
import TidemarkStore

/// A pinned state of a container's stores, which does not change while others write. Both stores are pinned at one moment. As a
/// pinned query generation of Core Data.
///
/// ```swift
/// let before = try journal.snapshot()
/// try await journal.deleteAll(Destination.self)
/// try await before.count(Destination.self)         // as many as before
/// ```
///
/// While a snapshot exists, the stores' write-ahead logs can't be emptied, and they grow: release it when you have read what you
/// need.
public struct ContainerSnapshot: RecordReading {
    /// The stores that records are read from; not for programs.
    public let recordSources: RecordSources
    let databases: PerScope<any DatabaseReader>

    init(_ container: PersistentContainer) throws {
        let databases = try Self.pinned(container)
        self.databases = databases
        recordSources = RecordSources(all: container.sources.all.map { $0.reading(databases[$0.scope]) })
    }

    /// The number of times that both stores are pinned without a lock.
    private static let attempts = 5

    /// Pins both stores at one moment. It pins the private store, then the shared one, and succeeds if the private store has not
    /// changed meanwhile. If others keep writing, it takes their locks for a moment.
    private static func pinned(_ container: PersistentContainer) throws -> PerScope<any DatabaseReader> {
        let source = container.sources.private
        for _ in 0..<attempts {
            let pair = try pin(container)
            let now = try source.database.unsafeReentrantRead { try source.changeMark($0) }
            if try pair.private.unsafeReentrantRead({ try source.changeMark($0) }) == now { return pair }
        }
        // Everyone takes the two locks in the same order.
        let locks = try ContainerLocks(storesAt: container.directory.url, timeout: .seconds(30))
        defer { locks.release() }
        return try pin(container)
    }

    private static func pin(_ container: PersistentContainer) throws -> PerScope<any DatabaseReader> {
        try container.stores.map { store -> any DatabaseReader in
            guard let pool = store.reader as? DatabasePool else {
                throw StoreError(.core, "the \(store.scope.name) store was opened with one connection, which can't pin a state")
            }
            // The snapshot opens a connection. The files may have been moved meanwhile.
            return try container.directory.lookingForFiles { try pool.makeSnapshot() }
        }
    }
}

extension PersistentContainer {
    /// Pins the present state of both stores, at one moment.
    ///
    /// - Throws: ``StoreError`` `moved`, `io`; `busy` when others have held the stores' locks for over 30 s.
    public nonisolated func snapshot() throws(StoreError) -> ContainerSnapshot {
        do {
            return try ContainerSnapshot(self)
        } catch {
            throw StoreError(error, doing: "pin the state of \(directory.url.path)")
        }
    }

    /// Makes a context for edits.
    ///
    /// - Parameter mergePolicy: The policy of the context's saves; `nil` for the policies of the types and the container.
    public nonisolated func newContext(mergePolicy: MergePolicy? = nil) -> EditingContext {
        EditingContext(container: self, mergePolicy: mergePolicy)
    }
}
