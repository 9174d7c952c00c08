import Foundation
import TidemarkSQLite

/// Tells others that a cloud is open, so that nobody puts another in its place.
final class CloudUse: Sendable {
    private let lock: Lock

    init(of directory: CloudDirectory) throws {
        lock = Lock(try StoreLock(at: directory.useLock))
        try lock.take(directory)
    }

    /// `@unchecked Sendable`: it is touched when it is made, and when it goes.
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
