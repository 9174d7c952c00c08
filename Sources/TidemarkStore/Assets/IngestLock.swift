import Foundation
package import TidemarkSQLite

/// Keeps contents of a container from being removed. Processes that ingest files hold it, and processes that copy the container.
package final class IngestLock {
    private let lock: StoreLock

    /// - Returns: `nil` where no file was ever ingested, and in a container that can't be written to: no process removes contents
    ///   there.
    /// - Throws: ``StoreError`` `busy` while contents are removed.
    package init?(sharing container: ContainerDirectory) throws(StoreError) {
        let file = container.staging.appendingPathComponent("lock")
        guard access(container.staging.path, W_OK) == 0, access(file.path, W_OK) == 0 || errno == ENOENT else { return nil }
        let lock = try StoreLock(at: file)
        try lock.acquire(shared: true, timeout: .seconds(30))
        self.lock = lock
    }
}
