package import TidemarkCloud

/// Counts attempts to sign in, by names such as an account and an address.
///
/// A name may go on so many times at once, and then so many times a second. What counts in all servers is in a storage that they share.
package protocol SignInRateStorage: Sendable {
    /// Counts one more attempt under each name, in this order, up to the first under which too many have come.
    ///
    /// - Parameter now: Seconds that only go on, for a storage of one process; one that servers share has a clock of its own.
    /// - Returns: Seconds to wait before the next attempt; `nil` where this one may go on.
    /// - Throws: `CloudError` `serviceUnavailable` and others, where nothing can be counted.
    func wait(for names: [SignInRate], at now: Double) async throws(CloudError) -> Double?
}

/// A name under which attempts are counted, and how many may come.
package struct SignInRate: Hashable, Sendable {
    /// What the name is of, such as `address`.
    package let kind: String
    package let name: String
    /// How many may come a second, for as long as they do; 0 is no limit.
    package let perSecond: Double
    /// How many may come at once.
    package let burst: Double

    package init(_ kind: String, _ name: String, perSecond: Double, burst: Double) {
        (self.kind, self.name, self.perSecond, self.burst) = (kind, name, perSecond, max(burst, 1))
    }
}
