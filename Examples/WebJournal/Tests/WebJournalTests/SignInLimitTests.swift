import Foundation
import NIOHTTP1
import Synchronization
import Testing

@testable import webjournal

/// Goal: strangers keep nobody from signing in, and the server's limits are not reached. Method: a site behind a proxy that names the
/// browsers' addresses, and counts by a clock that is set.
@Suite(.timeLimit(.minutes(30))) struct SignInLimitTests {
    private static let ada = "ada@example.org"
    private static let host = "journal.example.org"

    private func from(_ address: String) -> [String: String] { ["Host": Self.host, "X-Forwarded-For": address] }

    @Test func `one stranger keeps nobody from signing in`() async throws {
        let limits = SignInLimits(now: { [start = ContinuousClock.now] in start })
        func stopClock(of site: inout Site) { site.signIns = limits }
        try await TestSite.run(url: "http://\(Self.host)", accounts: PasswordAccounts.init, stopClock) { site, accounts in
            let stranger = site.browser()
            for number in 1...5 {
                let answer = try await stranger.signIn(
                    "person\(number)@example.org", password: "guess", headers: from("198.51.100.\(number), 192.0.2.7"))
                #expect(answer.status == .forbidden)
            }
            for address in ["192.0.2.7", "192.0.2.7:4711", "203.0.113.9, 192.0.2.7"] {
                let refused = try await stranger.signIn(Self.ada, password: "one", headers: from(address))
                #expect(refused.status == .tooManyRequests && refused.text.contains("Wait a minute"), "\(address)")
            }
            #expect(accounts.attempts == 5)
            #expect(try await site.browser().signIn(Self.ada, password: "one", headers: from("192.0.2.8")).status == .seeOther)
        }
    }

    @Test func `many strangers do not keep an owner out of a browser's address that is known`() async throws {
        let limits = SignInLimits(now: { [start = ContinuousClock.now] in start })
        #expect(await limits.admits(Self.ada, from: "192.0.2.8"))
        await limits.succeed(Self.ada, from: "192.0.2.8")
        var admitted = 0
        for number in 0..<100 where await limits.admits("Ada@Example.org", from: "198.51.100.\(number)") { admitted += 1 }
        #expect(admitted == 5)
        #expect(await limits.admits(Self.ada, from: "192.0.2.8"))
        #expect(await limits.admits("ben@example.org", from: "192.0.2.8"))
    }

    @Test func `what is let through stays below the server's limits`() async throws {
        let time = Mutex(ContinuousClock.now)
        let limits = SignInLimits(now: { time.withLock { $0 } })
        for account in 0..<15 { await limits.succeed("person\(account)", from: "192.0.2.\(account)") }
        // More than as many as it can take, for two minutes.
        var (all, toOne) = (0, 0)
        for second in 0..<120 {
            for account in 0..<15 {
                for address in ["192.0.2.\(account)", "198.51.\(second % 100).\(account)"]
                where await limits.admits("person\(account)", from: address) {
                    all += 1
                    if account == 0 { toOne += 1 }
                }
            }
            time.withLock { $0 += .seconds(1) }
        }
        // The server lets 50 and 10 of them through at once, and as many each minute.
        #expect(all > 45 * 2 && all <= 45 * 3, "\(all)")
        #expect(toOne > 0 && toOne <= 9 * 3, "\(toOne)")
    }

    @Test func `an address is counted by what one subscriber has`() {
        #expect(SignInLimits.name(of: "2001:db8::1") == SignInLimits.name(of: "[2001:db8::2]:4711"))
        #expect(SignInLimits.name(of: "2001:db8::1") != SignInLimits.name(of: "2001:db8:0:1::1"))
        #expect(SignInLimits.name(of: "::ffff:192.0.2.7") == "192.0.2.7")
        #expect(SignInLimits.name(of: "192.0.2.7:4711") == "192.0.2.7")
        #expect(SignInLimits.name(of: "unknown") == "unknown")
    }
}
