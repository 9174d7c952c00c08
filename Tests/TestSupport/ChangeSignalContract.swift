import TidemarkCloudEngine

/// The checks of what every ``ChangeSignal`` does.
package enum ChangeSignalContract {
    /// Makes the signals that the processes of one container have, and a signal of another container.
    package struct Subject: Sendable {
        /// Makes another process's signal of the container.
        let signal: @Sendable () async throws -> any ChangeSignal
        /// A signal of another container.
        let other: @Sendable () async throws -> any ChangeSignal

        package init(
            _ signal: @escaping @Sendable () async throws -> any ChangeSignal,
            other: @escaping @Sendable () async throws -> any ChangeSignal
        ) {
            (self.signal, self.other) = (signal, other)
        }
    }

    /// Counts the elements of a signal's stream until ``end()``. Until then it holds the signal.
    private final class Listener: Sendable {
        private let signal: any ChangeSignal
        private let count: Shared<Int>
        private let task: Task<Void, Never>

        init(to signal: any ChangeSignal) throws {
            let (stream, count) = (try signal.notifications(), Shared(0))
            (self.signal, self.count) = (signal, count)
            task = Task { for await _ in stream { count.change { $0 += 1 } } }
        }

        deinit { task.cancel() }

        var heard: Int { count.value }

        /// Ends the stream.
        func end() async {
            task.cancel()
            await task.value
        }

        /// Waits until the count is greater than a number.
        func requireMore(than before: Int, _ what: String) async throws {
            try require(try await eventually { heard > before }, "\(what): nothing was heard")
        }
    }

    /// Posts until a listener hears it: a connection may need a moment.
    private static func connect(_ listener: Listener, by signal: any ChangeSignal) async throws {
        for _ in 0..<3_000 where listener.heard == 0 {
            signal.post()
            try await Task.sleep(for: .milliseconds(20))
        }
        try require(listener.heard > 0, "it never hears")
    }

    /// All checks.
    package static let checks: [StorageCheck<Subject>] = [
        StorageCheck("a listener in this process gets each signal after the last one that it got") { subject in
            let signal = try await subject.signal()
            let listener = try Listener(to: signal)
            for number in 1...5 {
                let before = listener.heard
                signal.post()
                try await listener.requireMore(than: before, "signal \(number)")
            }
        },
        StorageCheck("a listener in another process gets the signal, and can answer") { subject in
            let (here, there) = (try await subject.signal(), try await subject.signal())
            let (listenerHere, listenerThere) = (try Listener(to: here), try Listener(to: there))
            try await connect(listenerThere, by: here)
            try await connect(listenerHere, by: there)
            for number in 1...5 {
                let before = listenerThere.heard
                here.post()
                try await listenerThere.requireMore(than: before, "signal \(number)")
                let answered = listenerHere.heard
                there.post()
                try await listenerHere.requireMore(than: answered, "answer \(number)")
            }
        },
        StorageCheck("all listeners get a signal, and one that has ended does not affect others") { subject in
            let (here, there) = (try await subject.signal(), try await subject.signal())
            let listeners = try [here, here, there, there].map { try Listener(to: $0) }
            for listener in listeners { try await connect(listener, by: here) }
            await listeners[0].end()
            await listeners[2].end()
            let before = listeners.map(\.heard)
            here.post()
            for index in [1, 3] { try await listeners[index].requireMore(than: before[index], "listener \(index)") }
            try requireEqual(listeners[0].heard, before[0], "a listener that has ended")
            try requireEqual(listeners[2].heard, before[2], "a listener of another process that has ended")
        },
        StorageCheck("a signal that is posted without listeners does no harm") { subject in
            let signal = try await subject.signal()
            for _ in 0..<100 { signal.post() }
            let listener = try Listener(to: signal)
            let before = listener.heard
            signal.post()
            try await listener.requireMore(than: before, "the first after it listens")
        },
        StorageCheck("many signals at once wake a listener, and may be merged") { subject in
            let (here, there) = (try await subject.signal(), try await subject.signal())
            let listener = try Listener(to: there)
            try await connect(listener, by: here)
            let before = listener.heard
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<200 { group.addTask { here.post() } }
            }
            try await listener.requireMore(than: before, "two hundred signals")
        },
        StorageCheck("the count of signals grows for the process that posts and for one that listens") { subject in
            let (here, there) = (try await subject.signal(), try await subject.signal())
            let listeners = try [here, there].map { try Listener(to: $0) }
            try await connect(listeners[1], by: here)
            let (heardHere, heardThere) = (here.heard, there.heard)
            here.post()
            try require(try await eventually { here.heard > heardHere }, "the number of who posts doesn't grow")
            try require(try await eventually { there.heard > heardThere }, "the number of who hears doesn't grow")
        },
        StorageCheck("signals of one container don't count in another") { subject in
            let (signal, other) = (try await subject.signal(), try await subject.other())
            let (listener, elsewhere) = (try Listener(to: signal), try Listener(to: other))
            try await connect(listener, by: signal)
            try await connect(elsewhere, by: other)
            // All posts that were under way have arrived.
            let settled = try await settle(elsewhere)
            for number in 1...20 {
                let before = listener.heard
                signal.post()
                try await listener.requireMore(than: before, "signal \(number)")
            }
            try requireEqual(elsewhere.heard, settled, "what was heard elsewhere")
        },
    ]

    /// Waits until no more elements come.
    private static func settle(_ listener: Listener) async throws -> Int {
        var (last, quiet) = (listener.heard, 0)
        for _ in 0..<1_000 where quiet < 20 {
            try await Task.sleep(for: .milliseconds(20))
            let heard = listener.heard
            (last, quiet) = (heard, heard == last ? quiet + 1 : 0)
        }
        return last
    }
}
