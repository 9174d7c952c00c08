import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Limits attempts to sign in, so that nobody can guess a password, and nobody can keep the owner out permanently.
///
/// Attempts to an account from one address are counted, and attempts from an address to all accounts. Above their limits they are
/// refused. Attempts to an account from all addresses together are only slowed down: if they were refused, any stranger could
/// keep its owner out.
final class SignInLimits: Sendable {
    /// The place of a slowed attempt, which waits until its turn comes or another attempt takes the place.
    final class Place: Sendable {
        /// Seconds from the attempt until its turn.
        let wait: Double
        fileprivate let address: String
        /// The time of its turn, in seconds of the monotonic clock.
        fileprivate let due: Double
        private let taken: AsyncStream<Void>
        private let end: AsyncStream<Void>.Continuation

        fileprivate init(_ address: String, due: Double, at now: Double) {
            (self.address, self.due) = (address, due)
            wait = max(0, due - now)
            (taken, end) = AsyncStream.makeStream(of: Void.self)
        }

        /// Returns when another attempt has taken the place, or the task is cancelled.
        func untilTaken() async { for await _ in taken {} }

        fileprivate func take() { end.finish() }
    }

    private let rates: any SignInRateStorage
    private let perMinute: Int
    private let choice: @Sendable (Int) -> Int
    /// The places that are taken, by account.
    private let places = LockedValue<[String: [Place]]>([:])

    /// How many times the limit of one account and one address is allowed for an address, or for an account, in all.
    private static let breadth = 5
    /// How many times the limit of an address is allowed for a network: a /24 of IPv4, a /48 of IPv6.
    private static let networkBreadth = 4
    /// The seconds that a slowed attempt waits. With the most places, two attempts a second reach an account.
    static let pause: Double = 5
    private static let placesMax = 10

    /// - Parameters:
    ///   - perMinute: The attempts to an account from one address; 0 is no limit.
    ///   - rates: The storage of the counts; this process counts alone, unless servers share a storage.
    ///   - choice: Chooses one of so many places to be taken; a parameter for tests.
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
    ///   - network: The network of the address; `nil` to count none.
    ///   - now: Seconds since whenever.
    /// - Returns: Seconds to wait before the next try, or `nil` where it may go on.
    func wait(
        for name: String, from address: String, network: String? = nil, at now: Double
    ) async throws(CloudError) -> Double? {
        // An address has no zero byte, so it can separate the two.
        var names = [rate("pair", "\(address)\0\(name)"), rate("address", address, times: Self.breadth)]
        if let network { names.append(rate("network", network, times: Self.breadth * Self.networkBreadth)) }
        return try await rates.wait(for: names, at: now)
    }

    /// Counts an attempt on a device on which a person has signed in before.
    ///
    /// - Returns: Whether the device has so few attempts that it may go before strangers.
    func admits(device: String, at now: Double) async throws(CloudError) -> Bool {
        try await rates.wait(for: [rate("device", device)], at: now) == nil
    }

    /// Counts an attempt that may go on.
    ///
    /// - Returns: Whether the account has more attempts than one person makes.
    func isCrowded(_ name: String, at now: Double) async throws(CloudError) -> Bool {
        try await rates.wait(for: [rate("account", name, times: Self.breadth)], at: now) != nil
    }

    /// Takes a place for an attempt to wait in. ``release(_:of:)`` gives it back.
    ///
    /// A network has one place, and its next attempt takes over the place of the one before. If no place is left, an attempt
    /// takes over another's place at random, with the rest of its time. So the rate is the same as without that, and nobody can
    /// hold all places by being first.
    func hold(_ name: String, from address: String, at now: Double) -> Place {
        places.withLock { places in
            // An attempt whose turn has come needs its place no longer.
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
