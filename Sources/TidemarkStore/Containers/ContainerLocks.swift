package import Foundation
import TidemarkModel
package import TidemarkSQLite

/// All locks of a container. While they are held, no process writes to its stores, moves their logs or ingests files.
///
/// They are released with this object.
package struct ContainerLocks: ~Copyable {
    private let ownStore: StoreLock
    private let sharedStore: StoreLock
    private let ingest: StoreLock?

    /// - Parameter timeout: How long each is waited for.
    /// - Throws: ``StoreError`` `busy`.
    package init(at url: URL, timeout: Duration) throws(StoreError) {
        // This one first: it may be held for long, and no process waits for it while it writes.
        let ingest = try Self.ingest(at: url, timeout: timeout)
        let ownStore = try Self.taken(.private, at: url, timeout: timeout)
        let sharedStore = try Self.taken(.shared, at: url, timeout: timeout)
        self.ingest = consume ingest
        self.ownStore = consume ownStore
        self.sharedStore = consume sharedStore
    }

    /// Takes the locks of the stores alone. Files may be ingested meanwhile.
    package init(storesAt url: URL, timeout: Duration) throws(StoreError) {
        let ownStore = try Self.taken(.private, at: url, timeout: timeout)
        let sharedStore = try Self.taken(.shared, at: url, timeout: timeout)
        self.ingest = nil
        self.ownStore = consume ownStore
        self.sharedStore = consume sharedStore
    }

    /// `nil` where no file was ever ingested.
    private static func ingest(at url: URL, timeout: Duration) throws(StoreError) -> StoreLock? {
        let staging = url.appendingPathComponent("staging")
        guard FileManager.default.fileExists(atPath: staging.path) else { return nil }
        let lock = try StoreLock(at: staging.appendingPathComponent("lock"))
        do {
            try lock.acquire(shared: false, timeout: timeout)
        } catch {
            guard error.code == .busy else { throw error }
            throw StoreError(
                .busy,
                "an import or an app that has \(url.path) open is adding files; try again when it is done"
            )
        }
        return lock
    }

    private static func taken(_ scope: StoreScope, at url: URL, timeout: Duration) throws(StoreError) -> StoreLock {
        let lock = try StoreLock(at: url.appendingPathComponent("\(scope.name).sqlite-lock"))
        try lock.acquire(shared: false, timeout: timeout)
        return lock
    }

    package borrowing func release() {
        ingest?.release()
        sharedStore.release()
        ownStore.release()
    }
}
