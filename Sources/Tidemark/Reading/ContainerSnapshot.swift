import Foundation
import GRDB
public import TidemarkModel
public import TidemarkSQLite
import TidemarkStore

/// One state of a container's stores, which stays as it is while others write. As a pinned query generation.
///
/// ```swift
/// let before = try journal.snapshot()
/// try await journal.deleteAll(Destination.self)
/// try await before.count(Destination.self)         // as many as before
/// ```
///
/// While it is there, the stores' write-ahead logs can't be emptied and grow: let go of it when you have read what you need. The two
/// stores are pinned one after the other.
public struct ContainerSnapshot: RecordReading {
    /// The stores that records are read from; not for programs.
    public let recordSources: RecordSources
    let databases: PerScope<any DatabaseReader>

    init(_ container: PersistentContainer) throws {
        let databases = try container.stores.map { store -> any DatabaseReader in
            guard let pool = store.reader as? DatabasePool else {
                throw StoreError(.core, "the \(store.scope.name) store was opened with one connection, which can't pin a state")
            }
            // It opens a connection of its own, for which the files may have gone meanwhile.
            return try container.directory.lookingForFiles { try pool.makeSnapshot() }
        }
        self.databases = databases
        recordSources = RecordSources(all: container.sources.all.map { $0.reading(databases[$0.scope]) })
    }
}

extension PersistentContainer {
    /// Pins the state that the stores have now.
    public nonisolated func snapshot() throws(StoreError) -> ContainerSnapshot {
        do {
            return try ContainerSnapshot(self)
        } catch {
            throw StoreError(error, doing: "pin the state of \(directory.url.path)")
        }
    }

    /// A workplace for edits.
    ///
    /// - Parameter mergePolicy: The policy of its saves; `nil` for the types' and the container's.
    public nonisolated func newContext(mergePolicy: MergePolicy? = nil) -> EditingContext {
        EditingContext(container: self, mergePolicy: mergePolicy)
    }
}
