import TidemarkCloudEngine
import TidemarkModel

/// The content of `subscriptions.sqlite` in memory, by the places of changes. So the cost of a change is that of its
/// subscriptions.
final class SubscriptionCache: Sendable {
    typealias Owner = SubscriptionOwner

    /// The place of changes: a zone, or all zones of an owner.
    private struct Place: Hashable {
        let container: String
        let environment: StoreEnvironment
        /// The scope of the subscriber's database.
        let scope: DatabaseScope
        /// The user record name of the zone's owner; empty in the public database.
        let zoneOwner: String
        /// `nil` for all zones.
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
        var subscriptions: [Owner: [String: StoredSubscription]] = [:]
        /// By record type; subscriptions to whole zones have `nil`.
        var names: [Place: [String?: Set<Name>]] = [:]
        /// The oldest first.
        var devices: [DeviceOwner: [NotifiedDevice]] = [:]
    }

    private let state = LockedValue(State())

    // Subscriptions

    func subscriptions(of owner: Owner) -> [StoredSubscription] {
        state.withLock { $0.subscriptions[owner].map { Array($0.values) } ?? [] }.sorted { $0.id < $1.id }
    }

    func subscription(_ id: String, of owner: Owner) -> StoredSubscription? {
        state.withLock { $0.subscriptions[owner]?[id] }
    }

    func count(of owner: Owner) -> Int { state.withLock { $0.subscriptions[owner]?.count ?? 0 } }

    func set(_ subscription: StoredSubscription) {
        let owner = subscription.owner
        state.withLock { state in
            Self.remove(subscription.id, of: owner, from: &state)
            state.subscriptions[owner, default: [:]][subscription.id] = subscription
            guard let place = Self.place(of: subscription) else { return }
            let name = Name(owner: owner, id: subscription.id)
            state.names[place, default: [:]][subscription.place?.recordType, default: []].insert(name)
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
        guard let place = place(of: known) else { return }
        let type = known.place?.recordType
        state.names[place]?[type]?.remove(Name(owner: owner, id: id))
        if state.names[place]?[type]?.isEmpty ?? false { state.names[place]?.removeValue(forKey: type) }
        if state.names[place]?.isEmpty ?? false { state.names[place] = nil }
    }

    private static func place(of subscription: StoredSubscription) -> Place? {
        guard let place = subscription.place else { return nil }
        let owner = subscription.owner
        return Place(
            container: owner.container, environment: owner.environment, scope: owner.scope, zoneOwner: place.zoneOwner,
            zone: place.zone)
    }

    // Changes

    /// Returns whether there is a subscription to changes in a zone.
    func isWatched(_ zone: ChangedZone) -> Bool {
        let places = Self.places(of: zone)
        return state.withLock { state in places.contains { state.names[$0] != nil } }
    }

    /// Returns the subscriptions to changes of some record types in a zone.
    ///
    /// - Parameter types: `nil` for all types.
    func subscriptions(to zone: ChangedZone, types: Set<String>?) -> [StoredSubscription] {
        let places = Self.places(of: zone)
        return state.withLock { state in
            var found: [StoredSubscription] = []
            func add(_ names: Set<Name>?) {
                for name in names ?? [] {
                    guard let subscription = state.subscriptions[name.owner]?[name.id] else { continue }
                    found.append(subscription)
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

    private static func places(of changed: ChangedZone) -> [Place] {
        changed.scopes.flatMap { scope in
            ([changed.zone, nil] as [String?]).map { zone in
                Place(
                    container: changed.container, environment: changed.environment, scope: scope, zoneOwner: changed.owner,
                    zone: zone)
            }
        }
    }

    // Devices

    func devices(of account: String, container: String, environment: StoreEnvironment) -> [NotifiedDevice] {
        let owner = DeviceOwner(account: account, container: container, environment: environment)
        return state.withLock { $0.devices[owner] ?? [] }
    }

    func has(_ device: NotifiedDevice) -> Bool {
        state.withLock { $0.devices[Self.owner(of: device)]?.contains(device) ?? false }
    }

    func add(_ device: NotifiedDevice, instead gone: NotifiedDevice?) {
        state.withLock { state in
            let owner = Self.owner(of: device)
            if let gone { state.devices[owner]?.removeAll { $0 == gone } }
            state.devices[owner, default: []].append(device)
        }
    }

    private static func owner(of device: NotifiedDevice) -> DeviceOwner {
        DeviceOwner(account: device.account, container: device.container, environment: device.environment)
    }
}
