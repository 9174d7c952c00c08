import CTideCore
package import Foundation

/// A lock file of the C core; see `tide_lock.h`. The lock is released when the process dies.
package struct StoreLock: ~Copyable {
    private let lock: OpaquePointer
    private let turns: LockTurns

    package init(at url: URL) throws(StoreError) {
        var created: OpaquePointer?
        try checked { tide_lock_create(url.path, &created, &$0) }
        lock = created!
        turns = LockTurns.of(url)
    }

    deinit { tide_lock_destroy(lock) }

    /// Runs `body` under the lock.
    ///
    /// Threads of this process get the lock in the order in which they asked for it; see ``LockTurns``.
    ///
    /// - Parameter timeout: The longest wait for the lock.
    /// - Throws: ``StoreError`` `busy` when the time has passed; the errors of `body`.
    package borrowing func withLock<Result>(timeout: Duration, _ body: () throws -> Result) throws -> Result {
        let deadline = ContinuousClock.now + timeout
        guard turns.begin(until: deadline) else {
            throw StoreError(
                .busy, "others have held \(turns.path) for over \(timeout); try again when they are done")
        }
        defer { turns.end() }
        try acquire(shared: false, timeout: max(.zero, deadline - .now))
        defer { tide_lock_release(lock) }
        return try body()
    }

    package borrowing func acquire(shared: Bool, timeout: Duration) throws(StoreError) {
        let milliseconds = UInt32(clamping: timeout / .milliseconds(1) < 4e9 ? Int64(timeout / .milliseconds(1)) : .max)
        try checked { tide_lock_acquire(lock, shared, milliseconds, &$0) }
    }

    /// Whether the file at the lock's path is still the locked file. It is not if the container was removed, since that removes
    /// its lock files.
    package var isInPlace: Bool { tide_lock_is_in_place(lock) }

    /// Takes the lock exclusively if it is free. Returns whether it did.
    package borrowing func acquireIfFree() throws(StoreError) -> Bool {
        do {
            try acquire(shared: false, timeout: .zero)
            return true
        } catch {
            if error.code == .busy { return false }
            throw error
        }
    }

    package borrowing func release() { tide_lock_release(lock) }
}
