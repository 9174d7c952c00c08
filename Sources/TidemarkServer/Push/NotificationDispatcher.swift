import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Takes summary of changes, and has them told one after the other, while those who have made them are long answered.
///
/// ChangeSummary that come faster than they are told are dropped: a notification is a hint to look.
final class NotificationDispatcher: Sendable {
    /// What one request has changed in a zone.
    struct ChangeSummary: Sendable {
        struct Change: Sendable {
            let record: String
            /// Empty where a deletion doesn't say.
            let type: String
            let event: Subscription.Event
        }

        let container: String
        let environment: StoreEnvironment
        let isPublic: Bool
        let zoneName: String
        /// The user record name of whose zone it is.
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

    /// Has summary told, if anybody may want to hear of them; returns at once.
    func tell(_ summary: ChangeSummary) {
        guard !summary.changes.isEmpty, subscriptions.mayConcern(summary.changedZone) else { return }
        if case .dropped = queue.yield(summary) { metrics.count(.changeSummariesDropped) }
    }
}
