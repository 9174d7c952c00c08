import Foundation
import Synchronization
import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// The right to synchronise a container: one process has it at a time.
///
/// `@unchecked Sendable`: the core takes and releases a lock from any thread.
public final class SyncLock: @unchecked Sendable {
    private let lock: StoreLock
    private let wasReleased = Atomic(false)

    /// - Throws: ``ContainerEvent/Failure`` 134410 when another process has it; ``StoreError``.
    public init(_ container: ContainerDirectory) throws {
        let lock = try StoreLock(at: container.url.appendingPathComponent(ContainerContents.syncLock))
        guard try lock.acquireIfFree() else {
            throw ContainerEvent.Failure(
                code: SyncErrorCode.anotherSyncer, reason: "another process synchronises \(container.url.path)",
                cause: .anotherSyncer)
        }
        self.lock = consume lock
    }

    /// Gives the right back at once. Further calls have no effect.
    public func release() {
        wasReleased.store(true, ordering: .releasing)
        lock.release()
    }

    /// Whether the right is still held.
    var isHeld: Bool { !wasReleased.load(ordering: .acquiring) }
}
