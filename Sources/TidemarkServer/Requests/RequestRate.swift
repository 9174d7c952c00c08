import TidemarkModel

/// Limits the rate of many names: each may have a burst of requests, and then so many a second.
///
/// Names that have rested are forgotten, so it holds only those that were busy recently.
final class RequestRate: Sendable {
    private struct Bucket {
        var left: Double
        var at: Double
    }

    private let perSecond, burst: Double
    private let buckets = LockedValue<(names: [String: Bucket], sweepAt: Int)>(([:], 10_000))

    /// - Parameter perSecond: The rate; 0 for no limit.
    init(perSecond: Double, burst: Double) {
        self.perSecond = perSecond
        self.burst = max(burst, 1)
    }

    /// Counts a request of a name.
    ///
    /// - Parameter now: Seconds of a monotonic clock.
    /// - Returns: Seconds to wait before the next try, or `nil` where it may go on.
    func wait(for name: String, at now: Double) -> Double? {
        guard perSecond > 0 else { return nil }
        return buckets.withLock { buckets in
            var bucket = buckets.names[name] ?? Bucket(left: burst, at: now)
            bucket.left = min(burst, bucket.left + max(now - bucket.at, 0) * perSecond)
            bucket.at = now
            defer { buckets.names[name] = bucket }
            guard bucket.left >= 1 else { return (1 - bucket.left) / perSecond }
            bucket.left -= 1
            if buckets.names.count >= buckets.sweepAt {
                let (perSecond, burst) = (perSecond, burst)
                buckets.names = buckets.names.filter { min(burst, $1.left + (now - $1.at) * perSecond) < burst }
                buckets.sweepAt = max(10_000, buckets.names.count * 2)
            }
            return nil
        }
    }
}
