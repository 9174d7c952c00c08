import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// Takes news of changes, and has them told one after the other, while those who have made them are long answered.
///
/// News that come faster than they are told are dropped: a notification is a hint to look.
final class Herald: Sendable {
    /// What one request has changed in a zone.
    struct News: Sendable {
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
    }

    private static let newsMost = 256

    private let picture: SubscriptionPicture
    private let queue: AsyncStream<News>.Continuation
    private let metrics: ServerMetrics

    init(_ cloud: EmbeddedCloud, _ book: SubscriptionBook, _ courier: Courier, _ metrics: ServerMetrics) {
        let (stream, queue) = AsyncStream.makeStream(of: News.self, bufferingPolicy: .bufferingOldest(Self.newsMost))
        picture = book.picture
        self.metrics = metrics
        self.queue = queue
        let telling = NewsTelling(cloud: cloud, book: book, courier: courier)
        Task { for await news in stream { await telling.tell(news) } }
    }

    deinit { queue.finish() }

    /// Has news told, if anybody may want to hear of them; returns at once.
    func tell(_ news: News) {
        guard !news.changes.isEmpty, picture.isWatched(news) else { return }
        if case .dropped = queue.yield(news) { metrics.count(.newsDropped) }
    }
}
