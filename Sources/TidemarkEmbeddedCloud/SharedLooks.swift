import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Looks at what has changed last that several listeners share.
actor SharedLooks {
    private struct Caller: Hashable, Sendable {
        let user: String
        let scope: DatabaseScope
    }

    private struct Look {
        /// The last signal that was heard before it began.
        let signal: Int64
        let task: Task<NewestChanges?, Never>
    }

    /// Listeners that wait for a look go on waiting for it when it has made room for others.
    private var looks = BoundedCache<Caller, Look>(capacity: 10_000)

    /// Returns what has changed last of what somebody sees, after all signals so far: looked up once for those who listen as the same
    /// caller.
    ///
    /// - Parameter heard: ``ChangeSignal/heard`` before the look: what is posted meanwhile is looked at the next time.
    /// - Returns: `nil` where it can't be told.
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
