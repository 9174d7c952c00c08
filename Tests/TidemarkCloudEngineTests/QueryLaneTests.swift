import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a client that asks for many queries delays only itself. Method: queries that end when the test says so, and a clock that
/// the test moves.
@Suite(.timeLimit(.minutes(30))) struct QueryLaneTests {
    private final class Trial: Sendable {
        let order = LockedValue<[String]>([])
        let lanes: QueryLanes

        init(_ change: (inout QueryLanes.Limits) -> Void = { _ in }) {
            var limits = QueryLanes.Limits()
            change(&limits)
            let time = Holder()
            holder = time
            lanes = QueryLanes(limits, now: { time.seconds.withLock { $0 } })
        }

        final class Holder: Sendable { let seconds = LockedValue(0.0) }
        let holder: Holder

        func pass(_ seconds: Double) { holder.seconds.withLock { $0 += seconds } }

        /// Asks for a query, and records when it runs.
        func ask(_ client: String, _ lane: QueryLanes.Lane) -> Task<Void, any Error> {
            Task {
                try await lanes.enter(client, lane)
                order.withLock { $0.append(client) }
            }
        }

        func entered(_ count: Int) async -> [String] {
            // Each task is admitted or waits as soon as it runs.
            for _ in 0..<10_000 where order.withLock({ $0.count }) < count { await Task.yield() }
            return order.withLock { $0 }
        }
    }

    @Test func `one long query runs at a time, and clients take turns`() async throws {
        let trial = Trial()
        try await trial.lanes.enter("first", .long)
        var tasks: [Task<Void, any Error>] = []
        // One client asks for many queries, before others ask for one each.
        for (client, waiting) in [("busy", 1), ("busy", 2), ("busy", 3), ("anna", 4), ("ben", 5)] {
            tasks.append(trial.ask(client, .long))
            for _ in 0..<10_000 where trial.lanes.waiting(in: .long) < waiting { await Task.yield() }
            #expect(trial.lanes.waiting(in: .long) == waiting)
        }
        #expect(await trial.entered(0) == [])
        trial.lanes.leave("first", .long, .init(steps: 1, seconds: 0))
        for (place, client) in ["busy", "anna", "ben", "busy", "busy"].enumerated() {
            #expect(await trial.entered(place + 1).last == client)
            #expect(trial.order.withLock { $0.count } == place + 1)
            trial.lanes.leave(client, .long, .init(steps: 1, seconds: 0))
        }
        for task in tasks { try await task.value }
    }

    @Test func `a client has one quick query at a time, and another client's runs beside it`() async throws {
        let trial = Trial()
        try await trial.lanes.enter("busy", .quick)
        let second = trial.ask("busy", .quick)
        for _ in 0..<10_000 where trial.lanes.waiting(in: .quick) < 1 { await Task.yield() }
        try await trial.lanes.enter("anna", .quick)
        trial.lanes.leave("anna", .quick, .init(steps: 1, seconds: 0))
        #expect(trial.order.withLock { $0 } == [])
        trial.lanes.leave("busy", .quick, .init(steps: 1, seconds: 0))
        try await second.value
        #expect(trial.order.withLock { $0 } == ["busy"])
    }

    @Test func `a client that has used up its allowance goes to the long lane until the allowance is back`() async throws {
        let trial = Trial {
            $0.allowance = 1_000
            $0.allowancePerSecond = 100
        }
        #expect(trial.lanes.lane(for: "busy") == .quick)
        try await trial.lanes.enter("busy", .quick)
        trial.lanes.leave("busy", .quick, .init(steps: 1_500, seconds: 0))
        #expect(trial.lanes.lane(for: "busy") == .long)
        #expect(trial.lanes.lane(for: "anna") == .quick)
        trial.pass(4.9)
        #expect(trial.lanes.lane(for: "busy") == .long)
        trial.pass(0.2)
        #expect(trial.lanes.lane(for: "busy") == .quick)
        // A query that takes long counts by its time, even with few instructions.
        try await trial.lanes.enter("anna", .quick)
        trial.lanes.leave("anna", .quick, .init(steps: 1, seconds: 0.05))
        #expect(trial.lanes.lane(for: "anna") == .long)
    }

    @Test func `a client with too many waiting queries is refused`() async throws {
        let trial = Trial { $0.waitingOfClient = 2 }
        try await trial.lanes.enter("busy", .long)
        let tasks = [trial.ask("busy", .long), trial.ask("busy", .long)]
        for _ in 0..<10_000 where trial.lanes.waiting(in: .long) < 2 { await Task.yield() }
        await #expect(throws: CloudError(.requestRateLimited, "")) { try await trial.lanes.enter("busy", .long) }
        for _ in 0..<3 { trial.lanes.leave("busy", .long, .init(steps: 1, seconds: 0)) }
        for task in tasks { try await task.value }
    }
}
