import Foundation
import TidemarkSQLite

/// Holds a lock while a cloud is open, so that no process replaces it.
final class CloudUse: Sendable {
    private let lock: Lock

    init(of directory: CloudDirectory) throws {
        lock = Lock(try StoreLock(at: directory.useLock))
        try lock.take(directory)
    }

    /// `@unchecked Sendable`: the lock is used only when the object is made and when it is released.
    private final class Lock: @unchecked Sendable {
        private let lock: StoreLock

        init(_ lock: consuming StoreLock) { self.lock = lock }

        func take(_ directory: CloudDirectory) throws {
            do {
                try lock.acquire(shared: true, timeout: .seconds(5))
            } catch {
                guard error.code == .busy else { throw error }
                throw StoreError(.busy, "\(directory.url.path) is just being replaced; try again when that is done")
            }
        }
    }
}
