package import Foundation
import TidemarkModel

/// The order in which the threads of this process come to a lock file: that in which they have asked for it.
///
/// The file's own lock is looked at again and again by whoever waits for it, so that one who takes it back at once, as a bulk import does
/// batch after batch, would hardly ever let anybody else in.
///
/// `@unchecked Sendable`: the condition guards the queue.
package final class LockTurns: @unchecked Sendable {
    let path: String
    private let condition = NSCondition()
    /// The first has the turn.
    private var queue: [UInt64] = []
    private var next: UInt64 = 0

    private init(_ path: String) { self.path = path }

    private struct Weak { weak var turns: LockTurns? }
    private static let all = LockedValue<[String: Weak]>([:])

    /// Those of a lock file.
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

    /// How many have the turn or wait for it.
    package var count: Int {
        condition.lock()
        defer { condition.unlock() }
        return queue.count
    }

    /// Waits for the turn; `false` when the time has passed.
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

    /// Lets the next one in.
    func end() {
        condition.lock()
        queue.removeFirst()
        condition.broadcast()
        condition.unlock()
    }
}
