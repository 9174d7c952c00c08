import TidemarkCloud
import TidemarkModel

/// Divides the time for queries between clients: accounts, and the addresses of those who are not signed in.
///
/// A query starts in the quick lane, where it may do little. One that needs more starts again in the long lane, where one query at a time
/// runs, clients take turns, and each query sleeps half of the time. A client that has used up its allowance goes to the long lane at once.
/// So a client that asks for much waits for itself and for other such clients.
package final class QueryLanes: Sendable {
    enum Lane: Int { case quick, long }

    /// How much a query and a client may take.
    package struct Limits: Sendable {
        package init() {}

        /// What a query may do in the quick lane.
        package var quick = QueryBudget(steps: 500_000, time: .milliseconds(500))
        /// What a query may do in all.
        package var long = QueryBudget(steps: 50_000_000, time: .seconds(10), givesWay: true)
        /// Queries that run at once in the quick lane.
        var quickRunning = 2
        /// Queries of a client that may wait in one lane.
        var waitingOfClient = 32
        /// Queries that may wait in one lane.
        var waiting = 1_000
        /// Instructions that a client may use at once.
        var allowance: Double = 10_000_000
        /// Instructions a second that come to a client's allowance.
        var allowancePerSecond: Double = 2_000_000
    }

    let limits: Limits
    private let now: @Sendable () -> Double
    private let state = LockedValue(State())

    /// - Parameter now: Seconds by a clock that does not go back.
    package init(_ limits: Limits = Limits(), now: @escaping @Sendable () -> Double = QueryLanes.seconds) {
        (self.limits, self.now) = (limits, now)
    }

    static let seconds: @Sendable () -> Double = {
        let time = origin.duration(to: ContinuousClock.now)
        return Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18
    }
    private static let origin = ContinuousClock.now

    private struct State {
        var queues = [Queue(), Queue()]
        var allowances: [String: (left: Double, at: Double)] = [:]
        var sweepAt = 10_000
    }

    /// The queries that run and wait in one lane.
    private struct Queue {
        /// Clients that have a running query.
        var running: Set<String> = []
        var waiting: [String: [CheckedContinuation<Bool, Never>]] = [:]
        /// Clients that wait, in the order of their turns.
        var turns: [String] = []
        var count = 0

        /// - Returns: Whether the query may run; `nil` where it waits, and its continuation is kept.
        mutating func enter(
            _ client: String, _ continuation: CheckedContinuation<Bool, Never>, most: Int, _ limits: Limits
        ) -> Bool? {
            if running.count < most, !running.contains(client) {
                running.insert(client)
                return true
            }
            guard count < limits.waiting, (waiting[client]?.count ?? 0) < limits.waitingOfClient else { return false }
            if waiting[client] == nil { turns.append(client) }
            waiting[client, default: []].append(continuation)
            count += 1
            return nil
        }

        /// Returns the query that may run now: the first of the client whose turn it is.
        mutating func next(most: Int) -> CheckedContinuation<Bool, Never>? {
            guard running.count < most, let place = turns.firstIndex(where: { !running.contains($0) }) else { return nil }
            let client = turns.remove(at: place)
            guard var queue = waiting.removeValue(forKey: client) else { return nil }
            let first = queue.removeFirst()
            if !queue.isEmpty {
                waiting[client] = queue
                turns.append(client)
            }
            running.insert(client)
            count -= 1
            return first
        }
    }

    /// The lane in which a client's next query starts.
    func lane(for client: String) -> Lane {
        state.withLock { left(of: client, &$0) > 0 ? .quick : .long }
    }

    /// How many queries wait in a lane.
    func waiting(in lane: Lane) -> Int { state.withLock { $0.queues[lane.rawValue].count } }

    func budget(in lane: Lane) -> QueryBudget { lane == .quick ? limits.quick : limits.long }

    /// What a query has cost.
    struct Cost {
        /// Instructions of SQLite's virtual machine.
        var steps: Int64 = 0
        /// Seconds of processor time.
        var seconds = 0.0

        mutating func add(_ other: Cost) {
            steps += other.steps
            seconds += other.seconds
        }
    }

    /// Waits until a query of a client may run. ``leave(_:_:_:)`` has to follow.
    ///
    /// - Throws: `CloudError` `requestRateLimited` where too many wait.
    func enter(_ client: String, _ lane: Lane) async throws(CloudError) {
        let isAdmitted = await withCheckedContinuation { (continuation: CheckedContinuation<Bool, Never>) in
            let answer: Bool? = state.withLock { state in
                state.queues[lane.rawValue].enter(client, continuation, most: most(lane), limits)
            }
            if let answer { continuation.resume(returning: answer) }
        }
        guard isAdmitted else {
            throw CloudError(
                .requestRateLimited, "too many queries wait: send the next when the last is answered", retryAfter: .seconds(2))
        }
    }

    /// Ends a query that ``enter(_:_:)`` has let in, and takes its cost from the client's allowance.
    func leave(_ client: String, _ lane: Lane, _ cost: Cost) {
        let next = state.withLock { state in
            // A function of Tidemark's own counts as one instruction, however long it takes.
            let cost = max(Double(cost.steps), cost.seconds * Self.stepsPerSecond)
            state.allowances[client] = (left(of: client, &state) - cost, now())
            if state.allowances.count >= state.sweepAt { sweep(&state) }
            state.queues[lane.rawValue].running.remove(client)
            return state.queues[lane.rawValue].next(most: most(lane))
        }
        next?.resume(returning: true)
    }

    /// About the number of instructions that SQLite runs in a second of processor time.
    private static let stepsPerSecond = 20_000_000.0

    private func most(_ lane: Lane) -> Int { lane == .quick ? limits.quickRunning : 1 }

    private func left(of client: String, _ state: inout State) -> Double {
        guard let known = state.allowances[client] else { return limits.allowance }
        return min(limits.allowance, known.left + max(0, now() - known.at) * limits.allowancePerSecond)
    }

    /// Forgets clients whose allowance is full again.
    private func sweep(_ state: inout State) {
        let now = now()
        state.allowances = state.allowances.filter {
            $1.left + max(0, now - $1.at) * limits.allowancePerSecond < limits.allowance
        }
        state.sweepAt = max(10_000, state.allowances.count * 2)
    }
}
