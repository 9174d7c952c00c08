import Foundation
package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Receives notifications from other servers, and sends them, by LISTEN and NOTIFY on a connection of its own.
///
/// A notification may be lost, such as while the connection is broken. So all streams are also woken after each new connection,
/// and at a slow pace. A lost notification costs time and nothing else.
///
/// PgBouncer in the mode `transaction` delivers no notifications, so LISTEN needs an address that goes past it. Without such an
/// address the listener only sends: NOTIFY is a transaction of its own, which PgBouncer passes on.
package final class PostgresListener: Sendable {
    private struct State {
        var streams: [String: [Int: AsyncStream<Void>.Continuation]] = [:]
        var lastStream = 0
        /// Topics that are to be notified.
        var outbox: Set<String> = []
        var isRunning = false
        var isClosed = false
        var isConnected = false
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private let configuration: PostgresConfiguration
    private let pace: Duration
    private let listens: Bool
    private let metrics: PostgresMetrics?
    private let state = LockedValue(State())
    private let pipe: WakePipe

    /// The channel of all topics.
    static let channel = "tidemark_changes"
    /// The most bytes of a topic, since PostgreSQL's limit for a payload is 8,000. Topics that are equal up to here are woken
    /// together.
    private static let topicLimit = 1_000

    /// Makes a listener. Its thread begins with the first call of ``changes(of:)`` or ``post(_:)``.
    ///
    /// - Parameters:
    ///   - pace: The time after which all streams are woken, with or without notifications.
    ///   - listens: Whether to receive notifications. With `false`, for the address of a pooler, the listener changes no setting
    ///     of the session. It notifies others, but only this process and the pace wake its streams.
    ///   - metrics: Records whether there is a connection.
    package init(
        _ configuration: PostgresConfiguration, pace: Duration = .seconds(15), listens: Bool = true,
        metrics: PostgresMetrics? = nil
    ) throws(PostgresError) {
        var configuration = configuration
        configuration.preparesStatements = listens
        (self.configuration, self.pace, self.listens, self.metrics) = (configuration, pace, listens, metrics)
        pipe = try WakePipe()
    }

    /// Whether the listener has a connection now.
    package var isConnected: Bool { state.withLock { $0.isConnected } }

    /// Returns a stream that has an element after each change of a topic, and at times without one. Changes that come together may be one
    /// element.
    package func changes(of topic: String) -> AsyncStream<Void> {
        let topic = Self.cut(topic)
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            guard !state.isClosed else { return nil }
            state.lastStream += 1
            state.streams[topic, default: [:]][state.lastStream] = continuation
            return state.lastStream
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { state in
                state.streams[topic]?[number] = nil
                if state.streams[topic]?.isEmpty == true { state.streams[topic] = nil }
            }
        }
        start()
        return stream
    }

    /// Wakes all streams of a topic: those of this process at once, those of other processes by a notification. It does not
    /// block.
    package func post(_ topic: String) {
        let topic = Self.cut(topic)
        let isOpen = state.withLock { state in
            state.outbox.insert(topic)
            return !state.isClosed
        }
        guard isOpen else { return }
        wake([topic])
        start()
        pipe.wake()
    }

    /// Closes the connection, and ends all streams.
    package func close() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                state.isClosed = true
                if state.isRunning { state.closers.append(continuation) }
                return !state.isRunning
            }
            pipe.wake()
            if isOver {
                finish()
                continuation.resume()
            }
        }
    }

    private static func cut(_ topic: String) -> String {
        topic.utf8.count <= topicLimit ? topic : String(decoding: topic.utf8.prefix(topicLimit), as: UTF8.self)
    }

    /// Wakes the streams of some topics.
    ///
    /// - Parameter topics: The topics; `nil` for all.
    private func wake(_ topics: [String]?) {
        let woken = state.withLock { state in
            topics?.compactMap { state.streams[$0] }.flatMap(\.values) ?? state.streams.values.flatMap(\.values)
        }
        for stream in woken { stream.yield() }
    }

    private func finish() {
        let streams = state.withLock { state in
            defer { state.streams = [:] }
            return state.streams.values.flatMap(\.values)
        }
        for stream in streams { stream.finish() }
    }

    // The thread

    private func start() {
        let begins = state.withLock { state in
            guard !state.isRunning, !state.isClosed else { return false }
            state.isRunning = true
            return true
        }
        if begins { Thread.detachNewThread { [self] in run() } }
    }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func run() {
        var backoff = Backoff(first: .milliseconds(200), longest: .seconds(5))
        while !isClosed {
            do throws(PostgresError) {
                let connection = try PostgresConnection.open(configuration)
                try listen(connection) { backoff.succeed() }
            } catch {
                state.withLock { $0.isConnected = false }
                metrics?.listens(false)
                // Without a connection nothing is received, so the readers of the streams have to look themselves.
                wake(nil)
                pipe.wait(backoff.fail()) { isClosed }
            }
        }
        finish()
        let closers = state.withLock { state in
            (state.isRunning, state.isConnected) = (false, false)
            defer { state.closers = [] }
            return state.closers
        }
        for closer in closers { closer.resume() }
    }

    private func listen(_ connection: PostgresConnection, _ connected: () -> Void) throws(PostgresError) {
        if listens {
            // NOTIFY writes no row, so its commit need not wait for the disk.
            _ = try connection.run([PostgresCommand("SET synchronous_commit = off"), PostgresCommand("LISTEN \(Self.channel)")])
        }
        connected()
        state.withLock { $0.isConnected = true }
        metrics?.listens(listens)
        // Notifications were lost while there was no connection.
        wake(nil)
        let clock = ContinuousClock()
        var next = clock.now + pace
        while !isClosed {
            try post(connection)
            let topics = try connection.notifications(besides: pipe.descriptor, within: max(.zero, clock.now.duration(to: next)))
            pipe.drain()
            if !topics.isEmpty { wake(topics) }
            guard clock.now >= next else { continue }
            // A network that swallows all packets looks like one where nothing happens.
            try connection.ping()
            wake(nil)
            next = clock.now + pace
        }
        // Topics that were posted just before the end.
        try post(connection)
    }

    private func post(_ connection: PostgresConnection) throws(PostgresError) {
        let topics = state.withLock { state in
            defer { state.outbox = [] }
            return state.outbox
        }
        guard !topics.isEmpty else { return }
        do throws(PostgresError) {
            _ = try connection.run([
                PostgresCommand("SELECT count(pg_notify($1, topic)) FROM unnest($2) AS topic", [Self.channel, Array(topics)])
            ])
        } catch {
            state.withLock { $0.outbox.formUnion(topics) }
            throw error
        }
    }
}

/// Signals the changes of one topic, such as a container in an environment, to all servers of a database.
package final class PostgresChangeSignal: ChangeSignal {
    private let listener: PostgresListener
    private let topic: String
    private let listeners = ChangeListeners()
    /// Wakes the listeners after each change of the topic; runs from the first call of ``notifications()`` on.
    private let hearing = LockedValue<Task<Void, Never>?>(nil)

    package init(_ listener: PostgresListener, topic: String) { (self.listener, self.topic) = (listener, topic) }

    deinit { hearing.withLock { $0?.cancel() } }

    package var heard: Int64 { listeners.heard }

    package func post() {
        // The listener wakes the streams of this process too.
        listener.post(topic)
    }

    package func notifications() throws(CloudError) -> AsyncStream<Void> {
        let stream = listeners.stream()
        hearing.withLock { hearing in
            guard hearing == nil else { return }
            let changes = listener.changes(of: topic)
            hearing = Task { [listeners] in
                for await _ in changes { listeners.wake() }
            }
        }
        return stream
    }
}

/// Wakes a thread that waits in `poll`.
final class WakePipe: Sendable {
    let descriptor: Int32
    private let writing: Int32

    init() throws(PostgresError) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            throw PostgresError(.unsupported, "cannot listen for notifications: \(String(cString: strerror(errno)))")
        }
        (descriptor, writing) = (ends[0], ends[1])
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        close(descriptor)
        close(writing)
    }

    func wake() {
        var byte: UInt8 = 1
        // A full pipe wakes as well.
        _ = write(writing, &byte, 1)
    }

    func drain() {
        var bytes = [UInt8](repeating: 0, count: 256)
        while read(descriptor, &bytes, bytes.count) > 0 {}
    }

    /// Waits for a time limit, or until a condition holds. The condition is tested after each wake.
    func wait(_ limit: Duration, until holds: () -> Bool) {
        let clock = ContinuousClock()
        let end = clock.now + limit
        while !holds(), clock.now < end {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, Int32(clamping: clock.now.duration(to: end).milliseconds))
            drain()
        }
    }
}
