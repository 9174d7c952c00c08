import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Reads the newest changes once for several listeners.
actor SharedLooks {
    private struct Caller: Hashable, Sendable {
        let user: String
        let scope: DatabaseScope
    }

    private struct Look {
        /// The number of signals that were heard before the read began.
        let signal: Int64
        let task: Task<NewestChanges?, Never>
    }

    /// Removing a read from the cache does not end it: its listeners still get the result.
    private var looks = BoundedCache<Caller, Look>(capacity: 10_000)

    /// Returns the newest changes that a caller sees, after all signals so far. Listeners with the same caller share one read.
    ///
    /// - Parameter heard: ``ChangeSignal/heard`` before the read. A signal that is posted meanwhile causes another read.
    /// - Returns: `nil` where the changes can't be read.
    func newest(
        _ caller: CloudEngine.Caller, after heard: Int64, _ look: @escaping @Sendable () async -> NewestChanges?
    ) async -> NewestChanges? {
        let key = Caller(user: caller.user, scope: caller.scope)
        if let known = looks[key], known.signal >= heard { return await known.task.value }
        let task = Task { await look() }
        looks[key] = Look(signal: heard, task: task)
        return await task.value
    }
}
