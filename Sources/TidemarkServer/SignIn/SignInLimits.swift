import Synchronization

/// How many attempts to sign in are let through: so few that nobody guesses a password, and none so that others are kept out.
///
/// Attempts to an account from one address are counted, and those from an address to whatever account; beyond their number they are
/// refused. Those to an account from everywhere only get slower: were they refused, any stranger could keep its owner out.
final class SignInLimits: Sendable {
    private let pairs, addresses, accounts: RequestRate
    private let held = Mutex<[String: Int]>([:])

    /// How much more than to one account from one address may come from an address, or to an account, in all.
    private static let breadth = 5
    /// How long an attempt waits that is slowed down, and how many may wait at once: two a second are let through to an account.
    static let pause = Duration.seconds(5)
    private static let heldMax = 10

    /// - Parameter perMinute: Attempts to an account from one address; 0 is no limit.
    init(perMinute: Int) {
        func rate(_ count: Int) -> RequestRate { RequestRate(perSecond: Double(count) / 60, burst: Double(count)) }
        pairs = rate(perMinute)
        addresses = rate(perMinute * Self.breadth)
        accounts = rate(perMinute * Self.breadth)
    }

    /// Counts an attempt.
    ///
    /// - Parameter now: Seconds since whenever.
    /// - Returns: Seconds to wait before the next try, or `nil` where it may go on.
    func wait(for name: String, from address: String, at now: Double) -> Double? {
        // No address has a zero byte.
        pairs.wait(for: "\(address)\0\(name)", at: now) ?? addresses.wait(for: address, at: now)
    }

    /// Counts an attempt that goes on.
    ///
    /// - Returns: Whether more come to the account than one person makes.
    func isCrowded(_ name: String, at now: Double) -> Bool { accounts.wait(for: name, at: now) != nil }

    /// Has an attempt wait, if not too many do so already. Who was let in to wait gives the place back by ``release(_:)``.
    func hold(_ name: String) -> Bool {
        held.withLock { held in
            guard held[name, default: 0] < Self.heldMax else { return false }
            held[name, default: 0] += 1
            return true
        }
    }

    func release(_ name: String) {
        held.withLock { held in
            let left = (held[name] ?? 1) - 1
            held[name] = left > 0 ? left : nil
        }
    }
}
