import TidemarkCloud
import TidemarkModel

/// Limits how many requests of an account wait for notifications at once: each wait holds a connection and a listener.
final class LongPollLimiter: Sendable {
    /// The most waits at once of one account, or of one address without an account.
    static let waitsMost = 20

    private let waits = LockedValue<[String: Int]>([:])
    private let metrics: ServerMetrics

    init(metrics: ServerMetrics = ServerMetrics()) { self.metrics = metrics }

    /// Counts a wait. Call ``leave(_:)`` when it has ended.
    ///
    /// - Throws: `CloudError` `requestRateLimited`.
    func enter(_ name: String) throws(CloudError) {
        let hasRoom = waits.withLock { waits in
            let count = waits[name] ?? 0
            guard count < Self.waitsMost else { return false }
            waits[name] = count + 1
            return true
        }
        guard hasRoom else {
            throw CloudError(
                .requestRateLimited, "\(Self.waitsMost) requests wait already; end one of them first", retryAfter: .seconds(5))
        }
        metrics.waits(1)
    }

    func leave(_ name: String) {
        metrics.waits(-1)
        waits.withLock { waits in
            let count = waits[name] ?? 0
            waits[name] = count > 1 ? count - 1 : nil
        }
    }
}
