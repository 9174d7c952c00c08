import TidemarkCloudEngine
import TidemarkConsole
import TidemarkModel

/// The figures that a server shows in the console: its requests and notifications.
struct ServedFigures: ServerFigures {
    let requestHistory: RequestHistory
    /// `nil` where the server sends no notifications.
    let dispatcher: NotificationDispatcher?

    func history(_ span: FigureSpan) -> [FigureSample] { requestHistory.history(span) }
    func requests(of container: String?) -> [ServedRequest] { requestHistory.requests(of: container) }
    func deliveries(of container: String?) -> [Delivery] { dispatcher?.deliveries.deliveries(of: container) ?? [] }

    func notifications(
        of account: String, in container: String, _ environment: StoreEnvironment
    ) async throws -> NotifiedAccount {
        guard let dispatcher else { return NotifiedAccount(subscriptions: [], devices: 0) }
        var found: [KnownSubscription] = []
        for scope in DatabaseScope.allCases {
            let owner = SubscriptionOwner(account: account, container: container, environment: environment, scope: scope)
            for subscription in try await dispatcher.subscriptions.subscriptions(of: owner) {
                found.append(
                    KnownSubscription(
                        id: subscription.id, scope: scope, isOfZone: subscription.kind == .zone,
                        recordType: subscription.recordType, zone: subscription.isZoneWide ? nil : subscription.zoneName,
                        events: subscription.events.map(\.rawValue), hasFilters: subscription.hasFilters,
                        firesOnce: subscription.firesOnce))
            }
        }
        let owner = SubscriptionOwner(account: account, container: container, environment: environment, scope: .private)
        return NotifiedAccount(subscriptions: found, devices: try await dispatcher.subscriptions.devices(of: owner).count)
    }
}
