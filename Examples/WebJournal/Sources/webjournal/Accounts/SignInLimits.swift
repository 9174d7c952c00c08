import Foundation

/// Bounds the attempts to sign in of each browser, before the server is asked.
///
/// To the server all browsers have one address, which it lets sign in 10 times a minute to an account, and 50 times in all. Without limits
/// of our own, one stranger uses these up for everybody. The server knows the address, too, from the sign-ins of everybody, so it slows no
/// guess down. What is let through here stays below the server's limits, and a part of it is kept for the addresses from which somebody has
/// signed in to the account: strangers on many addresses can't keep its owner out.
actor SignInLimits {
    /// How many attempts a minute are let through.
    private enum Limit: Hashable {
        case address, addressToAccount
        case account(isKnown: Bool)
        case all(isKnown: Bool)

        var perMinute: Double {
            switch self {
            case .address: 5
            case .addressToAccount: 3
            case .account(let isKnown): isKnown ? 3 : 6
            case .all(let isKnown): isKnown ? 15 : 30
            }
        }
    }

    private struct Name: Hashable {
        let limit: Limit
        var address = ""
        var account = ""
    }

    private var counts: [Name: (left: Double, at: ContinuousClock.Instant)] = [:]
    /// At how many counts those are looked for that mean nothing any more.
    private var sweep = SignInLimits.countsMin
    /// The last addresses from which somebody has signed in to an account.
    private var known: [String: [String]] = [:]
    private let now: @Sendable () -> ContinuousClock.Instant

    private static let countsMin = 1_000
    private static let knownMax = 8

    /// - Parameter now: The time; a parameter for tests.
    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { ContinuousClock.now }) { self.now = now }

    /// Counts an attempt.
    ///
    /// - Parameters:
    ///   - email: The account, as it was typed, whether there is one or not.
    ///   - address: The browser's.
    /// - Returns: Whether it may go on.
    func admits(_ email: String, from address: String) -> Bool {
        let (account, address) = (Self.account(email), Self.name(of: address))
        let isKnown = known[account]?.contains(address) ?? false
        return [
            Name(limit: .address, address: address), Name(limit: .addressToAccount, address: address, account: account),
            Name(limit: .account(isKnown: isKnown), account: account), Name(limit: .all(isKnown: isKnown)),
        ].allSatisfy { count($0) }
    }

    /// Remembers that somebody has signed in.
    func succeed(_ email: String, from address: String) {
        let (account, address) = (Self.account(email), Self.name(of: address))
        let others = (known[account] ?? []).filter { $0 != address }
        known[account] = others.suffix(Self.knownMax - 1) + [address]
    }

    private func count(_ name: Name) -> Bool {
        let now = self.now()
        if counts.count >= sweep {
            counts = counts.filter { self.left(of: $0.key, at: now) < $0.key.limit.perMinute }
            sweep = max(Self.countsMin, counts.count * 2)
        }
        let left = self.left(of: name, at: now)
        guard left >= 1 else { return false }
        counts[name] = (left - 1, now)
        return true
    }

    private func left(of name: Name, at now: ContinuousClock.Instant) -> Double {
        let most = name.limit.perMinute
        guard let (left, at) = counts[name] else { return most }
        return min(most, left + (now - at) / .seconds(60) * most)
    }

    private static func account(_ email: String) -> String { String(email.lowercased().prefix(255)) }

    /// What an address counts as: of IPv6 the first half, because one subscriber has all of the other half.
    static func name(of address: String) -> String {
        var text = Substring(address.prefix(64))
        if text.hasPrefix("[") {
            text = text.dropFirst().prefix { $0 != "]" }
        } else if text.count(where: { $0 == ":" }) == 1 {
            // A port.
            text = text.prefix { $0 != ":" }
        }
        var six = in6_addr()
        guard inet_pton(AF_INET6, String(text.prefix { $0 != "%" }), &six) == 1 else { return String(text) }
        let bytes = withUnsafeBytes(of: six) { Array($0) }
        // An IPv4 address that is written as one of IPv6.
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xff, bytes[11] == 0xff {
            return bytes[12...].map { String($0) }.joined(separator: ".")
        }
        return bytes[..<8].map { String($0, radix: 16) }.joined(separator: ":")
    }
}
