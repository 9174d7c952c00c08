import TidemarkCloudEngine

/// Counts codes in sign-ins whose password was right, by account. Without a limit, an attacker with the password could guess six
/// digits within days.
///
/// Over a directory, each process counts by itself, from its start on; servers over a database count together (``rate(of:)``).
/// Recovery codes are too long to be guessed, and are not counted.
struct CodeAttempts {
    private struct Count {
        var codes: Double
        var at: Int64
    }

    private var counts: [String: Count] = [:]

    /// How many codes of an account may be wrong one after the other.
    static let most = 10.0
    /// After that, a code may be tried once in so many microseconds: 6 minutes. Of a million codes, three are right at any time,
    /// so guessing for a day succeeds with a probability of 1 in 1,400.
    static let period: Int64 = 6 * 60_000_000

    /// The same limit for servers that count together.
    static func rate(of account: String) -> SignInRate {
        SignInRate("code", account, perSecond: 1e6 / Double(period), burst: most)
    }

    /// Counts a code.
    ///
    /// - Returns: Microseconds until a code may be tried; `nil` where this one may.
    mutating func take(_ account: String, at now: Int64) -> Int64? {
        var count = rest(account, at: now)
        guard count.codes <= Self.most - 1 else {
            return Int64((count.codes - (Self.most - 1)) * Double(Self.period)) + 1
        }
        count.codes += 1
        counts[account] = count
        return nil
    }

    /// Forgets the codes of an account that were counted, after a right one.
    mutating func forget(_ account: String) { counts[account] = nil }

    private mutating func rest(_ account: String, at now: Int64) -> Count {
        // Counts that have run down to 0 make no difference any more.
        if counts.count > 1000 { counts = counts.filter { $0.value.codes > Double(now - $0.value.at) / Double(Self.period) } }
        guard let count = counts[account] else { return Count(codes: 0, at: now) }
        return Count(codes: max(0, count.codes - Double(max(0, now - count.at)) / Double(Self.period)), at: now)
    }
}
