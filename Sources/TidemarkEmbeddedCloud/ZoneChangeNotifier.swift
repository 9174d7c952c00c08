import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Tells whoever listens, in this process and in others, that something was written to a container's databases.
final class ZoneChangeNotifier: ChangeSignal {
    private struct State {
        var notifications: Int64 = 0
        /// Notifications of all processes so far.
        var heard: Int64 = 0
        var listener: StoreChangeListener?
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let folder: URL
    private let notifier: StoreChangeNotifier
    private let state = LockedValue(State())
    private let looks = SharedLooks()

    init(_ folder: URL) throws(StoreError) {
        self.folder = folder
        notifier = try StoreChangeNotifier(in: folder, role: .app)
    }

    func post() {
        let (count, listeners) = state.withLock { state in
            state.notifications += 1
            state.heard += 1
            return (state.notifications, Array(state.listeners.values))
        }
        notifier.post(transaction: count, scope: .public)
        for listener in listeners { listener.yield() }
    }

    /// The notifications from now on; those that nobody has waited for become one.
    func notifications() throws(CloudError) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        do {
            let number = try state.withLock { state in
                if state.listener == nil {
                    state.listener = try StoreChangeListener(in: folder, ignoring: notifier) { [weak self] in self?.tell() }
                }
                state.next += 1
                state.listeners[state.next] = continuation
                return state.next
            }
            continuation.onTermination = { [weak self] _ in
                _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
            }
        } catch {
            throw CloudError(storage: error)
        }
        return stream
    }

    private func tell() {
        let listeners = state.withLock { state in
            state.heard += 1
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield() }
    }

    /// What has changed last of what somebody sees, after all notifications so far: looked up once for those who listen as the same caller.
    ///
    /// - Returns: `nil` where it can't be told.
    func newest(_ caller: CloudEngine.Caller, _ look: @escaping @Sendable () async -> NewestChanges?) async -> NewestChanges? {
        // Counted before the look: what is posted meanwhile is looked at the next time.
        await looks.newest(.init(user: caller.user, scope: caller.scope), notification: state.withLock(\.heard), look)
    }
}

/// Looks that several listeners share.
actor SharedLooks {
    struct Caller: Hashable, Sendable {
        let user: String
        let scope: DatabaseScope
    }

    private struct Look {
        /// The last notification that was heard before it began.
        let notification: Int64
        let task: Task<NewestChanges?, Never>
    }

    /// Listeners that wait for a look go on waiting for it when it has made room for others.
    private var looks = BoundedCache<Caller, Look>(capacity: 10_000)

    /// What a look has found that was begun after a notification.
    func newest(
        _ caller: Caller, notification: Int64, _ look: @escaping @Sendable () async -> NewestChanges?
    ) async -> NewestChanges? {
        if let known = looks[caller], known.notification >= notification { return await known.task.value }
        let task = Task { await look() }
        looks[caller] = Look(notification: notification, task: task)
        return await task.value
    }
}
