import Dispatch
import TidemarkModel

/// Connections that transactions share, so many at the most.
///
/// Who finds none waits in the order of coming. Each connection has a thread of its own while it is used, since transactions block.
package final class PostgresPool: Sendable {
    let configuration: PostgresConfiguration
    let metrics: PostgresMetrics
    private let state = LockedValue(State())
    private let clock = ContinuousClock()

    private struct State {
        /// The one that was used last is at the end.
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

    /// What is in the pool now.
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
            // Since it was looked, one may have come back.
            if state.waiters.isEmpty, let lease = state.idle.popLast() { return .success(.connection(lease)) }
            if state.waiters.isEmpty, state.count < configuration.connections {
                state.count += 1
                return .success(.slot)
            }
            state.waiters.append(Waiter(number: number, continuation: continuation))
            return nil
        }
        if let answer { return continuation.resume(returning: answer) }
        // It may have been cancelled before it waited.
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

    /// Gives a connection back: to who waits longest, or to the pool. One that is broken, cancelled or old is closed.
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
            // The first of them was not used for the longest time.
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

    /// A connection has gone, or was not opened: who waits longest may open another.
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
/// `@unchecked`: whoever has leased it uses its connection on its queue alone; the pool touches it only while it is idle.
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

    /// Whether the connection still works. One that was not used for a while is asked.
    func works(_ checkedAfter: Duration) async -> Bool {
        guard let connection, connection.isAlive() else { return false }
        guard lastUse < clock.now - checkedAfter else { return true }
        return await onQueue { [self] in (try? self.connection?.ping()) != nil }
    }

    func endUse() { connection?.endUse() }

    func close() async { await onQueue { [self] in connection = nil } }

    /// Runs something on the connection's thread. A cancelled task cancels it.
    func use(_ body: @escaping @Sendable (PostgresConnection) -> Void) -> @Sendable () -> Void {
        let number = connection?.beginUse() ?? 0
        queue.async { [self] in if let connection { body(connection) } }
        return { [self] in connection?.cancel(number) }
    }

    private func onQueue<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in queue.async { continuation.resume(returning: body()) } }
    }
}
