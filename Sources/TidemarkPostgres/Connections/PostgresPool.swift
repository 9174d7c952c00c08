import Dispatch
import TidemarkModel

/// A pool of connections that transactions share, with a limit on their number.
///
/// Transactions that find no free connection wait, and are served in the order in which they came. Each connection has a thread
/// of its own while it is used, since transactions block.
package final class PostgresPool: Sendable {
    let configuration: PostgresConfiguration
    let metrics: PostgresMetrics
    private let state = LockedValue(State())
    private let clock = ContinuousClock()

    private struct State {
        /// The connections that nobody uses. The most recently used is the last.
        var idle: [PostgresLease] = []
        /// All connections, and those that are being opened.
        var count = 0
        var waiters: [Waiter] = []
        var lastWaiter = 0
        var isClosed = false
        var closers: [CheckedContinuation<Void, Never>] = []
    }

    private struct Waiter {
        let number: Int
        let continuation: CheckedContinuation<Result<Grant, PostgresError>, Never>
    }

    /// What a transaction is given: a connection, or the right to open one.
    private enum Grant {
        case connection(PostgresLease)
        case slot
    }

    /// The numbers of connections and waiting transactions.
    package struct Statistics: Hashable, Sendable {
        package let inUse, idle, waiting: Int

        package init(inUse: Int, idle: Int, waiting: Int) { (self.inUse, self.idle, self.waiting) = (inUse, idle, waiting) }
    }

    /// Makes a pool. It connects when it is first used.
    package init(_ configuration: PostgresConfiguration, metrics: PostgresMetrics = PostgresMetrics()) {
        (self.configuration, self.metrics) = (configuration, metrics)
    }

    package var statistics: Statistics { state.withLock { Self.statistics(&$0) } }

    private static func statistics(_ state: inout State) -> Statistics {
        Statistics(inUse: state.count - state.idle.count, idle: state.idle.count, waiting: state.waiters.count)
    }

    private func report() {
        let now = statistics
        metrics.pool(inUse: now.inUse, idle: now.idle, waiting: now.waiting)
    }

    // Taking

    /// Returns a connection that works, for the caller alone, until ``release(_:)``.
    ///
    /// - Throws: `PostgresError` `unreachable`, `poolExhausted`, `cancelled`, `closed`, or what opening throws.
    func lease() async throws(PostgresError) -> PostgresLease {
        var grant = try await grant()
        if case .connection(let lease) = grant {
            if await lease.works(configuration.checkedAfter) {
                report()
                return lease
            }
            metrics.lostConnection()
            await lease.close()
            grant = .slot
        }
        let lease = PostgresLease(lifetime: configuration.lifetime * Double.random(in: 0.9...1))
        do throws(PostgresError) {
            try await lease.open(configuration)
            metrics.opened(true)
            report()
            return lease
        } catch {
            metrics.opened(false)
            freeSlot()
            throw error
        }
    }

    private func grant() async throws(PostgresError) -> Grant {
        let (grant, number) = try take()
        if let grant { return grant }
        let began = clock.now
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in wait(number, continuation) }
        } onCancel: {
            end(number, PostgresError(.cancelled, "the task was cancelled while it waited for a connection"))
        }
        let (name, limit) = (configuration.address.name, configuration.waitLimit)
        // The error is thrown below.
        metrics.waited(began.duration(to: clock.now), isServed: (try? result.get()) != nil)
        report()
        do throws(PostgresError) {
            return try result.get()
        } catch  where error.code == .poolExhausted {
            throw PostgresError(
                .poolExhausted, "all \(configuration.connections) connections to the \(name) were in use for \(limit)")
        }
    }

    private func take() throws(PostgresError) -> (Grant?, Int) {
        try state.withLock { state throws(PostgresError) in
            guard !state.isClosed else { throw Self.closed }
            state.lastWaiter += 1
            if state.waiters.isEmpty {
                if let lease = state.idle.popLast() { return (.connection(lease), 0) }
                if state.count < configuration.connections {
                    state.count += 1
                    return (.slot, 0)
                }
            }
            return (nil, state.lastWaiter)
        }
    }

    private static let closed = PostgresError(.closed, "the connections to the database were closed")

    private func wait(_ number: Int, _ continuation: CheckedContinuation<Result<Grant, PostgresError>, Never>) {
        let answer: Result<Grant, PostgresError>? = state.withLock { state in
            if state.isClosed { return .failure(Self.closed) }
            // A connection may have come back since `take()` looked.
            if state.waiters.isEmpty, let lease = state.idle.popLast() { return .success(.connection(lease)) }
            if state.waiters.isEmpty, state.count < configuration.connections {
                state.count += 1
                return .success(.slot)
            }
            state.waiters.append(Waiter(number: number, continuation: continuation))
            return nil
        }
        if let answer { return continuation.resume(returning: answer) }
        // The task may have been cancelled before its waiter was added.
        if Task.isCancelled { end(number, PostgresError(.cancelled, "the task was cancelled while it waited for a connection")) }
        DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(Int(configuration.waitLimit.milliseconds))) {
            [weak self] in self?.end(number, PostgresError(.poolExhausted, ""))
        }
    }

    private func end(_ number: Int, _ error: PostgresError) {
        let waiter = state.withLock { state in
            state.waiters.firstIndex { $0.number == number }.map { state.waiters.remove(at: $0) }
        }
        waiter?.continuation.resume(returning: .failure(error))
    }

    // Giving back

    /// Gives a connection to the task that waits longest, or back to the pool. A broken, cancelled or old connection is closed.
    func release(_ lease: PostgresLease) {
        lease.endUse()
        if lease.isBroken { metrics.lostConnection() }
        guard lease.isUsable else {
            Task {
                await lease.close()
                freeSlot()
            }
            return
        }
        lease.lastUse = clock.now
        var old: [PostgresLease] = []
        let waiter: Waiter? = state.withLock { state in
            if state.isClosed {
                old.append(lease)
                return nil
            }
            if !state.waiters.isEmpty { return state.waiters.removeFirst() }
            state.idle.append(lease)
            // The first has been idle for the longest time.
            while let first = state.idle.first, first.lastUse < clock.now - configuration.idleLifetime {
                old.append(state.idle.removeFirst())
            }
            return nil
        }
        waiter?.continuation.resume(returning: .success(.connection(lease)))
        close(old)
        report()
    }

    private func close(_ leases: [PostgresLease]) {
        for lease in leases {
            Task {
                await lease.close()
                freeSlot()
            }
        }
    }

    /// Frees the place of a connection that was closed or could not be opened. The task that waits longest may open another.
    private func freeSlot() {
        let (waiter, closers): (Waiter?, [CheckedContinuation<Void, Never>]) = state.withLock { state in
            if !state.waiters.isEmpty { return (state.waiters.removeFirst(), []) }
            state.count -= 1
            guard state.isClosed, state.count == 0 else { return (nil, []) }
            defer { state.closers = [] }
            return (nil, state.closers)
        }
        waiter?.continuation.resume(returning: .success(.slot))
        for closer in closers { closer.resume() }
        report()
    }

    /// Closes all connections, and waits for the transactions that use one. Later ones fail with `closed`.
    package func close() async {
        await withCheckedContinuation { continuation in
            let (idle, waiters, isOver): ([PostgresLease], [Waiter], Bool) = state.withLock { state in
                state.isClosed = true
                defer { (state.idle, state.waiters) = ([], []) }
                if state.count > 0 { state.closers.append(continuation) }
                return (state.idle, state.waiters, state.count == 0)
            }
            for waiter in waiters { waiter.continuation.resume(returning: .failure(Self.closed)) }
            close(idle)
            if isOver { continuation.resume() }
        }
    }
}

/// A connection of a pool, and the queue on whose thread it is used.
///
/// `@unchecked`: a lease uses its connection only on its queue, and the pool touches it only while it is idle.
final class PostgresLease: @unchecked Sendable {
    private let queue = DispatchQueue(label: "tidemark.postgres")
    private var connection: PostgresConnection?
    private let clock = ContinuousClock()
    private let ends: ContinuousClock.Instant
    var lastUse: ContinuousClock.Instant

    init(lifetime: Duration) {
        lastUse = clock.now
        ends = clock.now + lifetime
    }

    var isBroken: Bool { connection?.isBroken ?? true }
    var isUsable: Bool { connection.map { !$0.isBroken && !$0.isCancelled } ?? false && clock.now < ends }

    func open(_ configuration: PostgresConfiguration) async throws(PostgresError) {
        let result: Result<Void, PostgresError> = await onQueue { [self] in
            do throws(PostgresError) {
                connection = try PostgresConnection.open(configuration)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    /// Whether the connection still works. After a long idle time a round trip checks it.
    func works(_ checkedAfter: Duration) async -> Bool {
        guard let connection, connection.isAlive() else { return false }
        guard lastUse < clock.now - checkedAfter else { return true }
        return await onQueue { [self] in (try? self.connection?.ping()) != nil }
    }

    func endUse() { connection?.endUse() }

    func close() async { await onQueue { [self] in connection = nil } }

    /// Runs `body` on the connection's queue.
    ///
    /// - Returns: Cancels this use, from any thread.
    func use(_ body: @escaping @Sendable (PostgresConnection) -> Void) -> @Sendable () -> Void {
        let number = connection?.beginUse() ?? 0
        queue.async { [self] in if let connection { body(connection) } }
        return { [self] in connection?.cancel(number) }
    }

    private func onQueue<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: body()) } }
    }
}
