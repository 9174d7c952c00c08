import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// How many attempts to sign in are let through: so few that nobody guesses a password, and so that nobody keeps others out for good.
///
/// Attempts to an account from one address are counted, and those from an address to whatever account; beyond their number they are
/// refused. Those to an account from everywhere only get slower: were they refused, any stranger could keep its owner out.
final class SignInLimits: Sendable {
    /// Where an attempt waits that is slowed down: until it is its turn, or another attempt has taken the place.
    final class Place: Sendable {
        /// Seconds until it is its turn, from when it was given out.
        let wait: Double
        fileprivate let address: String
        /// When it is its turn: seconds since whenever.
        fileprivate let due: Double
        private let taken: AsyncStream<Void>
        private let end: AsyncStream<Void>.Continuation

        fileprivate init(_ address: String, due: Double, at now: Double) {
            (self.address, self.due) = (address, due)
            wait = max(0, due - now)
            (taken, end) = AsyncStream.makeStream(of: Void.self)
        }

        /// Returns when another attempt has taken it, or the task is cancelled.
        func untilTaken() async { for await _ in taken {} }

        fileprivate func take() { end.finish() }
    }

    private let rates: any SignInRateStorage
    private let perMinute: Int
    private let choice: @Sendable (Int) -> Int
    /// Those that are given out, by account.
    private let places = LockedValue<[String: [Place]]>([:])

    /// How much more than to one account from one address may come from an address, or to an account, in all.
    private static let breadth = 5
    /// How many addresses' worth may come from a network: a /24 of IPv4, a /48 of IPv6.
    private static let networkBreadth = 4
    /// Seconds that an attempt waits that is slowed down, and how many may wait at once: two a second are let through to an account.
    static let pause: Double = 5
    private static let placesMax = 10

    /// - Parameters:
    ///   - perMinute: Attempts to an account from one address; 0 is no limit.
    ///   - rates: Where attempts are counted; alone in this process, unless servers share it.
    ///   - choice: Which of so many has to go; a parameter for tests.
    init(
        perMinute: Int, rates: any SignInRateStorage = ProcessSignInRates(),
        choice: @escaping @Sendable (Int) -> Int = { Int.random(in: 0..<$0) }
    ) {
        (self.perMinute, self.rates) = (perMinute, rates)
        self.choice = choice
    }

    private func rate(_ kind: String, _ name: String, times: Int = 1) -> SignInRate {
        SignInRate(kind, name, perSecond: Double(perMinute * times) / 60, burst: Double(perMinute * times))
    }

    /// Counts an attempt.
    ///
    /// - Parameters:
    ///   - network: What the address is a part of; `nil` counts none.
    ///   - now: Seconds since whenever.
    /// - Returns: Seconds to wait before the next try, or `nil` where it may go on.
    func wait(
        for name: String, from address: String, network: String? = nil, at now: Double
    ) async throws(CloudError) -> Double? {
        // No address has a zero byte.
        var names = [rate("pair", "\(address)\0\(name)"), rate("address", address, times: Self.breadth)]
        if let network { names.append(rate("network", network, times: Self.breadth * Self.networkBreadth)) }
        return try await rates.wait(for: names, at: now)
    }

    /// Counts an attempt on a device that somebody has signed in on.
    ///
    /// - Returns: Whether it is so few that it may go before those of strangers.
    func admits(device: String, at now: Double) async throws(CloudError) -> Bool {
        try await rates.wait(for: [rate("device", device)], at: now) == nil
    }

    /// Counts an attempt that goes on.
    ///
    /// - Returns: Whether more come to the account than one person makes.
    func isCrowded(_ name: String, at now: Double) async throws(CloudError) -> Bool {
        try await rates.wait(for: [rate("account", name, times: Self.breadth)], at: now) != nil
    }

    /// Has an attempt wait. Whoever waits gives the place back by ``release(_:of:)``.
    ///
    /// A network has one place: its next attempt takes that of the one before. When none is left an attempt takes that of another by lot,
    /// with what is left of its time. So as many are let through as without lots, and nobody can hold all the places by coming first.
    func hold(_ name: String, from address: String, at now: Double) -> Place {
        places.withLock { places in
            // Whose turn it is has only to go.
            var held = (places[name] ?? []).filter { $0.due > now }
            var due = now + Self.pause
            let own = held.firstIndex { $0.address == address }
            if let index = own ?? (held.count < Self.placesMax ? nil : choice(held.count)) {
                let lost = held.remove(at: index)
                due = lost.due
                lost.take()
            }
            let place = Place(address, due: due, at: now)
            places[name] = held + [place]
            return place
        }
    }

    func release(_ place: Place, of name: String) {
        places.withLock { places in
            let left = (places[name] ?? []).filter { $0 !== place }
            places[name] = left.isEmpty ? nil : left
        }
    }
}

/// Counts attempts to sign in, in this process.
final class ProcessSignInRates: SignInRateStorage {
    /// How often the names of a kind may come.
    private struct Limit: Hashable {
        let kind: String
        let perSecond, burst: Double
    }

    private let rates = LockedValue<[Limit: RequestRate]>([:])

    func wait(for names: [SignInRate], at now: Double) async throws(CloudError) -> Double? {
        for name in names {
            let limit = Limit(kind: name.kind, perSecond: name.perSecond, burst: name.burst)
            let rate = rates.withLock { rates in
                if let known = rates[limit] { return known }
                let rate = RequestRate(perSecond: limit.perSecond, burst: limit.burst)
                rates[limit] = rate
                return rate
            }
            if let wait = rate.wait(for: name.name, at: now) { return wait }
        }
        return nil
    }
}
