import Foundation
package import TidemarkSQLite

/// The right that no content of a container is removed: who takes files in has it, and who copies the container.
package final class IngestLock {
    private let lock: StoreLock

    /// - Returns: `nil` where nothing was ever taken in, and where the container can't be written to: nobody removes anything there.
    /// - Throws: ``StoreError`` `busy` while contents are removed.
    package init?(sharing container: ContainerDirectory) throws(StoreError) {
        let file = container.staging.appendingPathComponent("lock")
        guard access(container.staging.path, W_OK) == 0, access(file.path, W_OK) == 0 || errno == ENOENT else { return nil }
        let lock = try StoreLock(at: file)
        try lock.acquire(shared: true, timeout: .seconds(30))
        self.lock = lock
    }
}
