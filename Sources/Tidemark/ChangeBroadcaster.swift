import TidemarkModel

/// Notifies listeners in this process that the history may have new transactions.
final class ChangeBroadcaster: Sendable {
    private struct Listeners {
        var next = 0
        var isFinished = false
        var all: [Int: (continuation: AsyncStream<Void>.Continuation, hearsOwn: Bool)] = [:]
    }

    private let listeners = LockedValue(Listeners())

    /// Notifies the listeners.
    ///
    /// - Parameter isOwn: Whether this container has written.
    func post(isOwn: Bool) {
        for listener in listeners.withLock({ Array($0.all.values) }) where listener.hearsOwn || !isOwn {
            listener.continuation.yield()
        }
    }

    /// Returns the notifications from now on. Notifications that come while no task waits become one.
    ///
    /// - Parameter withOwn: Whether writes of this container are included.
    func notifications(withOwn: Bool) -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = listeners.withLock { listeners -> Int? in
            guard !listeners.isFinished else { return nil }
            listeners.next += 1
            listeners.all[listeners.next] = (continuation, withOwn)
            return listeners.next
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.listeners.withLock { $0.all.removeValue(forKey: number) }
        }
        return stream
    }

    /// Ends all streams. Streams that are requested later end at once.
    func finish() {
        let all = listeners.withLock { listeners in
            listeners.isFinished = true
            return Array(listeners.all.values)
        }
        for listener in all { listener.continuation.finish() }
    }
}
