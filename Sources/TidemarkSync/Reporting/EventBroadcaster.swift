package import TidemarkModel

/// Gives the events of a synchronisation to all listeners.
///
/// The first listener also gets the events from before, at most the last 1,000: a program starts a synchronisation and then listens.
package final class EventBroadcaster: Sendable {
    private struct State {
        /// The events before the first listener; `nil` once there was one.
        var missed: [ContainerEvent]? = []
        var next = 0
        var listeners: [Int: @Sendable (ContainerEvent) -> Void] = [:]
        var streams: [Int: AsyncStream<ContainerEvent>.Continuation] = [:]
        var isFinished = false
    }

    /// The number of events that wait for a listener.
    private static let limit = 1000
    private let state = LockedValue(State())

    package init() {}

    /// Gives an event to all listeners, in the order of the calls.
    package func post(_ event: ContainerEvent) {
        let listeners = state.withLock { state -> [@Sendable (ContainerEvent) -> Void] in
            if var missed = state.missed {
                state.missed = nil
                if missed.count == Self.limit { missed.removeFirst() }
                missed.append(event)
                state.missed = missed
            }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener(event) }
    }

    /// Passes all events on to another broadcaster.
    package func forward(to other: EventBroadcaster) {
        let missed = state.withLock { state in
            state.next += 1
            state.listeners[state.next] = { other.post($0) }
            return state.missed ?? []
        }
        for event in missed { other.post(event) }
    }

    /// A stream of its own for each call. It ends when its task is cancelled, or when this object finishes or is deallocated, and buffers
    /// the last 1,000 events.
    ///
    /// - Parameter replaying: Whether the stream gets the events from before, if it is the first one that asks for them.
    package func stream(replaying: Bool = true) -> AsyncStream<ContainerEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ContainerEvent.self, bufferingPolicy: .bufferingNewest(Self.limit))
        let number = state.withLock { state -> Int? in
            if replaying {
                for event in state.missed ?? [] { continuation.yield(event) }
                state.missed = nil
            }
            guard !state.isFinished else { return nil }
            state.next += 1
            state.listeners[state.next] = { continuation.yield($0) }
            state.streams[state.next] = continuation
            return state.next
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in
                state.listeners[number] = nil
                state.streams[number] = nil
            }
        }
        return stream
    }

    /// Ends all streams. Later ones end at once.
    package func finish() {
        let streams = state.withLock { state in
            state.isFinished = true
            return Array(state.streams.values)
        }
        for stream in streams { stream.finish() }
    }

    deinit { finish() }
}
