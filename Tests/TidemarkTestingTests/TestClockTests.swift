import Testing
import TidemarkSync
import TidemarkTesting

/// Goal: waits of a test's clock end when the test says so, and cost no time. Method: tasks that wait on it.
@Suite(.timeLimit(.minutes(30))) struct TestClockTests {
    @Test func `waits end when the clock has come to their end`() async throws {
        let clock = TestClock()
        let environment = clock.environment
        let (long, short) = (
            Task { try await environment.sleep(.seconds(60)) }, Task { try await environment.sleep(.seconds(30)) }
        )
        await clock.waitForSleepers(2)
        clock.advance(by: .seconds(29))
        #expect(clock.sleeperCount == 2)
        clock.advance(by: .seconds(1))
        try await short.value
        #expect(clock.sleeperCount == 1)
        #expect(clock.elapsed == .seconds(30))
        long.cancel()
        await #expect(throws: CancellationError.self) { try await long.value }
        #expect(clock.sleeperCount == 0)
    }

    @Test func `a clock that moves when somebody waits makes waits free`() async throws {
        let clock = TestClock(movesWhenWaiting: true)
        try await clock.environment.sleep(.seconds(3600))
        await clock.sleep(.seconds(60))
        #expect(clock.elapsed == .seconds(3660))
        #expect(clock.environment.now() == clock.now)
        let random = (0..<3).map { _ in clock.environment.random() }
        let again = TestClock(movesWhenWaiting: true)
        #expect((0..<3).map { _ in again.environment.random() } == random)
    }
}
