package import TidemarkCloud

/// Counts attempts to sign in, under names such as an account or an address.
///
/// A name allows a burst of attempts, and then a number of attempts a second. Servers that share a storage count together.
package protocol SignInRateStorage: Sendable {
    /// Counts an attempt under each name, in this order, up to the first name with too many attempts.
    ///
    /// - Parameter now: Seconds of a clock that never goes back. A storage that servers share uses its own clock.
    /// - Returns: Seconds to wait before the next attempt; `nil` where this one may go on.
    /// - Throws: `CloudError` `serviceUnavailable` and others, where nothing can be counted.
    func wait(for names: [SignInRate], at now: Double) async throws(CloudError) -> Double?
}

/// A name under which attempts are counted, and how many may come.
package struct SignInRate: Hashable, Sendable {
    /// The kind of the name, such as `address`.
    package let kind: String
    package let name: String
    /// The attempts a second that are allowed without end; 0 for no limit.
    package let perSecond: Double
    /// The attempts that are allowed at once.
    package let burst: Double

    package init(_ kind: String, _ name: String, perSecond: Double, burst: Double) {
        (self.kind, self.name, self.perSecond, self.burst) = (kind, name, perSecond, max(burst, 1))
    }
}
