import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Collects summaries of changes, and notifies subscribers of one after the other, after the requests were answered.
///
/// Summaries that come faster than they are handled are dropped: a notification is only a hint to fetch.
final class NotificationDispatcher: Sendable {
    /// The changes of one request in a zone.
    struct ChangeSummary: Sendable {
        struct Change: Sendable {
            let record: String
            /// The record's type; empty for a deletion that does not name it.
            let type: String
            let event: Subscription.Event
        }

        let container: String
        let environment: StoreEnvironment
        let isPublic: Bool
        let zoneName: String
        /// The user record name of the zone's owner.
        let zoneOwner: String
        let changes: [Change]

        var changedZone: ChangedZone {
            ChangedZone(
                container: container, environment: environment, isPublic: isPublic, owner: isPublic ? "" : zoneOwner,
                zone: zoneName)
        }
    }

    private static let queueLimit = 256

    let subscriptions: SubscriptionStore
    /// The last notifications.
    let deliveries = DeliveryLog()
    private let queue: AsyncStream<ChangeSummary>.Continuation
    private let metrics: ServerMetrics

    init(_ cloud: EmbeddedCloud, _ subscriptions: SubscriptionStore, _ mailbox: any NotificationStorage, _ metrics: ServerMetrics)
    {
        let (stream, queue) = AsyncStream.makeStream(of: ChangeSummary.self, bufferingPolicy: .bufferingOldest(Self.queueLimit))
        self.subscriptions = subscriptions
        self.metrics = metrics
        self.queue = queue
        let telling = SubscriptionMatcher(
            cloud: cloud, subscriptions: subscriptions, mailbox: mailbox, deliveries: deliveries)
        Task { for await summary in stream { await telling.tell(summary) } }
    }

    deinit { queue.finish() }

    /// Queues a summary if there may be a subscription to its zone. Returns at once.
    func tell(_ summary: ChangeSummary) {
        guard !summary.changes.isEmpty, subscriptions.mayConcern(summary.changedZone) else { return }
        if case .dropped = queue.yield(summary) { metrics.count(.changeSummariesDropped) }
    }
}
