import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// What the subscription store has, in memory, by what changes: a change costs as much as there are who want to hear of it.
final class SubscriptionCache: Sendable {
    typealias Owner = SubscriptionStore.Owner
    typealias Device = SubscriptionStore.Device

    /// Somebody, and what they have subscribed to.
    struct Interest: Sendable {
        let owner: Owner
        let subscription: Subscription
    }

    /// What changes are in: a zone, or all zones of somebody.
    private struct Place: Hashable {
        let container: String
        let environment: StoreEnvironment
        /// Of who wants to hear of it.
        let scope: DatabaseScope
        /// The user record name of whose zone it is; empty in the public database.
        let zoneOwner: String
        /// `nil` for all.
        let zone: String?
    }

    private struct Name: Hashable {
        let owner: Owner
        let id: String
    }

    private struct DeviceOwner: Hashable {
        let account: String
        let container: String
        let environment: StoreEnvironment
    }

    private struct State {
        var subscriptions: [Owner: [String: Subscription]] = [:]
        /// By record type; those to zones under `nil`.
        var names: [Place: [String?: Set<Name>]] = [:]
        /// The oldest first.
        var devices: [DeviceOwner: [Device]] = [:]
    }

    private let state = LockedValue(State())

    // Subscriptions

    func subscriptions(of owner: Owner) -> [Subscription] {
        state.withLock { $0.subscriptions[owner].map { Array($0.values) } ?? [] }.sorted { $0.id < $1.id }
    }

    func subscription(_ id: String, of owner: Owner) -> Subscription? { state.withLock { $0.subscriptions[owner]?[id] } }

    func count(of owner: Owner) -> Int { state.withLock { $0.subscriptions[owner]?.count ?? 0 } }

    func set(_ subscription: Subscription, of owner: Owner) {
        let place = Self.place(of: subscription, owner)
        state.withLock { state in
            Self.remove(subscription.id, of: owner, from: &state)
            state.subscriptions[owner, default: [:]][subscription.id] = subscription
            guard let place else { return }
            let name = Name(owner: owner, id: subscription.id)
            state.names[place, default: [:]][Self.topic(of: subscription), default: []].insert(name)
        }
    }

    /// Removes the subscriptions and devices of an account.
    func forget(_ account: String) {
        state.withLock { state in
            for owner in state.subscriptions.keys.filter({ $0.account == account }) {
                for id in (state.subscriptions[owner] ?? [:]).keys { Self.remove(id, of: owner, from: &state) }
            }
            for owner in state.devices.keys.filter({ $0.account == account }) { state.devices[owner] = nil }
        }
    }

    func remove(_ id: String, of owner: Owner) { state.withLock { Self.remove(id, of: owner, from: &$0) } }

    private static func remove(_ id: String, of owner: Owner, from state: inout State) {
        guard let known = state.subscriptions[owner]?.removeValue(forKey: id) else { return }
        if state.subscriptions[owner]?.isEmpty ?? false { state.subscriptions[owner] = nil }
        guard let place = Self.place(of: known, owner) else { return }
        let type = topic(of: known)
        state.names[place]?[type]?.remove(Name(owner: owner, id: id))
        if state.names[place]?[type]?.isEmpty ?? false { state.names[place]?.removeValue(forKey: type) }
        if state.names[place]?.isEmpty ?? false { state.names[place] = nil }
    }

    /// The record type that it is for; `nil` for all.
    private static func topic(of subscription: Subscription) -> String? {
        subscription.kind == .query ? subscription.recordType ?? "" : nil
    }

    /// `nil` where nothing can change that it is for.
    private static func place(of subscription: Subscription, _ owner: Owner) -> Place? {
        let zoneOwner: String
        switch owner.scope {
        case .public: zoneOwner = ""
        case .private: zoneOwner = EmbeddedCloud.userRecordName(owner.account, in: owner.container)
        case .shared:
            guard let named = subscription.zone?.ownerName else { return nil }
            zoneOwner = named
        }
        let isOfAll = subscription.kind == .query && (subscription.isZoneWide || subscription.zoneName == nil)
        return Place(
            container: owner.container, environment: owner.environment, scope: owner.scope, zoneOwner: zoneOwner,
            zone: isOfAll ? nil : subscription.zoneName)
    }

    // What changes

    /// Whether anybody may want to hear of changes in a zone.
    func isWatched(_ summary: NotificationDispatcher.ChangeSummary) -> Bool {
        let places = Self.places(of: summary)
        return state.withLock { state in places.contains { state.names[$0] != nil } }
    }

    /// Who wants to hear of changes of one of these types in a zone.
    ///
    /// - Parameter types: `nil` for all.
    func interests(in summary: NotificationDispatcher.ChangeSummary, types: Set<String>?) -> [Interest] {
        let places = Self.places(of: summary)
        return state.withLock { state in
            var found: [Interest] = []
            func add(_ names: Set<Name>?) {
                for name in names ?? [] {
                    guard let subscription = state.subscriptions[name.owner]?[name.id] else { continue }
                    found.append(Interest(owner: name.owner, subscription: subscription))
                }
            }
            for place in places {
                guard let names = state.names[place] else { continue }
                guard let types else {
                    for names in names.values { add(names) }
                    continue
                }
                add(names[String?.none])
                for type in types { add(names[type]) }
            }
            return found
        }
    }

    private static func places(of summary: NotificationDispatcher.ChangeSummary) -> [Place] {
        let scopes: [DatabaseScope] = summary.isPublic ? [.public] : [.private, .shared]
        let zoneOwner = summary.isPublic ? "" : summary.zoneOwner
        return scopes.flatMap { scope in
            ([summary.zoneName, nil] as [String?]).map { zone in
                Place(
                    container: summary.container, environment: summary.environment, scope: scope, zoneOwner: zoneOwner, zone: zone
                )
            }
        }
    }

    // Devices

    func devices(of account: String, container: String, environment: StoreEnvironment) -> [Device] {
        let owner = DeviceOwner(account: account, container: container, environment: environment)
        return state.withLock { $0.devices[owner] ?? [] }
    }

    func has(_ device: Device) -> Bool { state.withLock { $0.devices[Self.owner(of: device)]?.contains(device) ?? false } }

    func add(_ device: Device, instead gone: Device?) {
        state.withLock { state in
            let owner = Self.owner(of: device)
            if let gone { state.devices[owner]?.removeAll { $0 == gone } }
            state.devices[owner, default: []].append(device)
        }
    }

    private static func owner(of device: Device) -> DeviceOwner {
        DeviceOwner(account: device.account, container: device.container, environment: device.environment)
    }
}
