package import TidemarkCloud
import TidemarkModel

/// Signals that a container's databases have changed.
package protocol ChangeSignal: Sendable {
    /// Wakes all listeners, in this process and in others. Signals may be merged, and say nothing of what changed: a listener asks for
    /// the changes. It is called after the transaction is durable, from any thread, and returns soon.
    func post()
    /// Returns a stream with an element after each signal of this process or another from now on. Signals that come before an
    /// element is read become one element, and there may be elements without a signal.
    func notifications() throws(CloudError) -> AsyncStream<Void>
    /// The number of signals that this process has posted or heard.
    var heard: Int64 { get }
}

/// The streams of a signal's listeners in this process, and how many signals there were.
package final class ChangeListeners: Sendable {
    private struct State {
        var heard: Int64 = 0
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = LockedValue(State())

    package init() {}

    /// As ``ChangeSignal/heard``.
    package var heard: Int64 { state.withLock(\.heard) }

    /// Makes a stream as ``ChangeSignal/notifications()`` returns it.
    package func stream() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number = state.withLock { state in
            state.next += 1
            state.listeners[state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            _ = self?.state.withLock { $0.listeners.removeValue(forKey: number) }
        }
        return stream
    }

    /// Counts a signal, and wakes the listeners.
    package func wake() {
        let listeners = state.withLock { state in
            state.heard += 1
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield() }
    }
}
