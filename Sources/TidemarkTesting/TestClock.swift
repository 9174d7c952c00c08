import Foundation
import TidemarkModel
public import TidemarkSync

/// A clock for tests of a synchronisation. Pauses, such as those after failures, take no real time.
///
/// ```swift
/// let clock = TestClock(movesWhenWaiting: true)
/// let nasty = FaultyDatabase(database, plan: .all(rate: 0.2, seed: 42), sleep: clock.sleep)
/// let engine = try await journal.syncEngine(with: nasty, environment: clock.environment)
/// let report = try await engine.sync(patience: .seconds(3600))
/// ```
///
/// With `movesWhenWaiting`, each wait moves the clock to the end of the wait and returns at once. Use this for
/// `sync(patience:isContinued:)`. Otherwise the clock stands still until ``advance(by:)`` moves it. Use this for a
/// synchronisation that keeps running, which would never stop on a clock that moves by itself.
public final class TestClock: Sendable {
    private struct Sleeper {
        let until: Int64
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var now: Int64
        var random: SeededRandom
        var next = 0
        var sleepers: [Int: Sleeper] = [:]
        var observers: [Observer] = []

        func fulfils(_ observer: Observer) -> Bool {
            let end = observer.within.map { now + TestClock.microseconds($0) } ?? .max
            return sleepers.values.count { $0.until <= end } >= observer.count
        }
    }

    private struct Observer {
        let count: Int
        let within: Duration?
        let continuation: CheckedContinuation<Void, Never>
    }

    private let state: LockedValue<State>
    private let start: Int64
    private let movesWhenWaiting: Bool

    /// Makes a clock.
    ///
    /// - Parameters:
    ///   - start: The time at first, in microseconds since 1970 UTC.
    ///   - movesWhenWaiting: Whether a wait moves the clock.
    ///   - seed: The seed of the random numbers by which pauses differ.
    public init(start: Int64 = 1_763_712_000_000_000, movesWhenWaiting: Bool = false, seed: UInt64 = 1) {
        self.start = start
        self.movesWhenWaiting = movesWhenWaiting
        state = LockedValue(State(now: start, random: SeededRandom(seed)))
    }

    /// The time, in microseconds since 1970 UTC.
    public var now: Int64 { state.withLock(\.now) }

    /// The time by which the clock has moved since it was made.
    public var elapsed: Duration { .microseconds(now - start) }

    /// The number of running waits.
    public var sleeperCount: Int { state.withLock(\.sleepers.count) }

    /// Moves the clock, and ends the waits whose time has come, in the order of their ends.
    public func advance(by duration: Duration) {
        let due = state.withLock { state -> [Sleeper] in
            state.now += Self.microseconds(duration)
            let due = state.sleepers.filter { $0.value.until <= state.now }
            for number in due.keys { state.sleepers[number] = nil }
            return due.values.sorted { $0.until < $1.until }
        }
        for sleeper in due { sleeper.continuation.resume() }
    }

    /// Returns when a number of waits are running, so that the work that the test has begun is waiting.
    ///
    /// - Parameters:
    ///   - count: The number of waits.
    ///   - within: Only waits that end within this time on the clock are counted; `nil` for all waits.
    public func waitForSleepers(_ count: Int = 1, within: Duration? = nil) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                let observer = Observer(count: count, within: within, continuation: continuation)
                if state.fulfils(observer) { return true }
                state.observers.append(observer)
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    /// Waits on this clock. Cancelling the task ends the wait. For ``FaultyDatabase``.
    @Sendable public func sleep(_ duration: Duration) async {
        // Only a cancellation is thrown.
        try? await wait(duration)
    }

    /// An environment for a synchronisation, with this clock. Its random numbers follow from the seed, so that a run can be
    /// repeated.
    public var environment: SyncEnvironment {
        SyncEnvironment(
            now: { self.now }, sleep: { try await self.wait($0) }, random: { self.state.withLock { $0.random.unit() } },
            identifier: { UUID() })
    }

    private func wait(_ duration: Duration) async throws {
        try Task.checkCancellation()
        // The shortest wait means that the awaited time has come already.
        guard !movesWhenWaiting, duration > .microseconds(1) else {
            advance(by: max(duration, .microseconds(1)))
            return await Task.yield()
        }
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let observers = state.withLock { state -> [CheckedContinuation<Void, Never>] in
                    state.sleepers[number] = Sleeper(
                        until: state.now + Self.microseconds(duration), continuation: continuation)
                    let ready = state.observers.filter { state.fulfils($0) }
                    state.observers = state.observers.filter { !state.fulfils($0) }
                    return ready.map(\.continuation)
                }
                for observer in observers { observer.resume() }
                // The task may have been cancelled before the wait was registered.
                if Task.isCancelled { cancel(number) }
            }
        } onCancel: {
            cancel(number)
        }
    }

    /// The duration in microseconds, rounded up: a wait is never too short.
    private static func microseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        return seconds * 1_000_000 + (attoseconds + 999_999_999_999) / 1_000_000_000_000
    }

    private func cancel(_ number: Int) {
        state.withLock { $0.sleepers.removeValue(forKey: number) }?.continuation.resume(throwing: CancellationError())
    }
}
