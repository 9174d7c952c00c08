package import Foundation
import TidemarkModel

/// Orders the threads of this process that want a lock file: first come, first served.
///
/// The lock of the file itself is polled. A thread that takes it again at once, as a bulk import does batch after batch, would
/// leave hardly any chance to others.
///
/// `@unchecked Sendable`: the condition guards the queue.
package final class LockTurns: @unchecked Sendable {
    let path: String
    private let condition = NSCondition()
    /// The tickets of the waiting threads. The first one has the turn.
    private var queue: [UInt64] = []
    private var next: UInt64 = 0

    private init(_ path: String) { self.path = path }

    private struct Weak { weak var turns: LockTurns? }
    private static let all = LockedValue<[String: Weak]>([:])

    /// The turns of a lock file.
    package static func of(_ url: URL) -> LockTurns {
        let path = url.standardizedFileURL.path
        return all.withLock { all in
            if let turns = all[path]?.turns { return turns }
            let turns = LockTurns(path)
            all = all.filter { $0.value.turns != nil }
            all[path] = Weak(turns: turns)
            return turns
        }
    }

    /// The number of threads that have the turn or wait for it.
    package var count: Int {
        condition.lock()
        defer { condition.unlock() }
        return queue.count
    }

    /// Waits for the turn. Returns `false` when the deadline has passed.
    func begin(until deadline: ContinuousClock.Instant) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        let ticket = next
        next += 1
        queue.append(ticket)
        while queue.first != ticket {
            let left = (deadline - .now) / .seconds(1)
            guard left > 0 else {
                queue.removeAll { $0 == ticket }
                return false
            }
            _ = condition.wait(until: Date(timeIntervalSinceNow: left))
        }
        return true
    }

    /// Ends the turn, and lets the next thread have it.
    func end() {
        condition.lock()
        queue.removeFirst()
        condition.broadcast()
        condition.unlock()
    }
}
