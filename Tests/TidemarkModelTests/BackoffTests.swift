import Testing

@testable import TidemarkModel

/// Goal: waits double up to the longest, vary at random, and follow the other side's request. Method: runs of failures with given
/// random numbers; those of a synchronisation are tested in SyncMachineTests.
@Suite(.timeLimit(.minutes(30))) struct BackoffTests {
    @Test func `waits double up to the longest, between half of a step and all of it`() {
        var (least, most) = (
            Backoff(first: .milliseconds(2), longest: .milliseconds(11)),
            Backoff(first: .milliseconds(2), longest: .milliseconds(11))
        )
        for step in [2000, 4000, 8000, 11_000, 11_000] {
            #expect(least.fail(random: 0) == .microseconds(step / 2))
            #expect([Duration.microseconds(step - 1), .microseconds(step)].contains(most.fail(random: 1.0.nextDown)))
        }
        #expect(least.failures == 5)
        least.succeed()
        #expect(least.failures == 0 && least.fail(random: 0) == .milliseconds(1))
    }

    @Test func `the wait stays at the longest after many failures, and for steps longer than it`() {
        for (first, longest) in [
            (Duration.seconds(1), Duration.seconds(300)), (.seconds(400), .seconds(300)), (.zero, .seconds(300)),
        ] {
            var backoff = Backoff(first: first, longest: longest)
            for _ in 0..<200 { #expect((.zero...longest).contains(backoff.fail())) }
            #expect((longest / 2...longest).contains(backoff.fail()))
        }
    }

    @Test func `the wait that the other side asks for is used, up to a day, unless it is very short`() {
        var backoff = Backoff(first: .seconds(1), longest: .seconds(300))
        #expect(backoff.fail(asked: .seconds(7), random: 0) == .seconds(7))
        #expect(backoff.fail(asked: .seconds(1_000_000), random: 0) == .seconds(86_400))
        #expect(backoff.fail(asked: .milliseconds(1), random: 0) == .seconds(2))
        #expect(backoff.fail(asked: .seconds(-5), random: 0) == .seconds(4))
        #expect(backoff.notBefore == .min && backoff.allows(0))
    }

    @Test func `the next try is due when the wait ends, or if the clock was set back before the failure`() {
        var backoff = Backoff(first: .seconds(1), longest: .seconds(300))
        let now: Int64 = 1_000_000_000
        backoff.fail(at: now, asked: nil, random: 0)
        #expect(backoff.notBefore == now + 500_000)
        for (moment, isAllowed) in [(now - 1, true), (now, false), (now + 499_999, false), (now + 500_000, true)] {
            #expect(backoff.allows(moment) == isAllowed, "\(moment - now)")
        }
        backoff.succeed()
        #expect(backoff.allows(now) && backoff.allows(.min))
    }

    @Test func `a wait is limited to the first one, unless the other side has asked for more`() {
        var backoff = Backoff(first: .seconds(1), longest: .seconds(300))
        for _ in 0..<5 { backoff.fail(at: 0, asked: nil, random: 0) }
        #expect(backoff.notBefore == 8_000_000)
        backoff.hasten(at: 2_000_000)
        #expect(backoff.notBefore == 3_000_000)
        backoff.hasten(at: 2_500_000)
        #expect(backoff.notBefore == 3_000_000)
        // A request for the length of the first wait counts.
        backoff.fail(at: 0, asked: .seconds(1), random: 0)
        #expect(backoff.notBefore == 1_000_000)
        backoff.hasten(at: -500_000)
        #expect(backoff.notBefore == 1_000_000)
        // A shorter one does not: the usual wait stays.
        backoff.fail(at: 0, asked: .milliseconds(999), random: 0)
        #expect(backoff.notBefore == 32_000_000)
        backoff.hasten(at: 0)
        #expect(backoff.notBefore == 1_000_000)
    }
}
