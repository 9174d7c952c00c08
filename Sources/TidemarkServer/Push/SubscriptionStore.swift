import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// The rules for subscriptions and notified devices, over a ``SubscriptionStorage``.
final class SubscriptionStore: Sendable {
    typealias Owner = SubscriptionOwner
    typealias Device = NotifiedDevice

    /// A subscription, with its owner.
    struct Interest: Sendable {
        let owner: Owner
        let subscription: Subscription
    }

    private let storage: any SubscriptionStorage
    /// The rows of the storage that can't be read.
    let unreadable: UnreadableRows
    /// The most subscriptions of an account in a database, and the most devices of an account in a container.
    static let subscriptionsMost = 100
    static let devicesMost = 100
    /// The decoded subscriptions, by their stored form.
    private let decoded = LockedValue(BoundedCache<Data, Subscription>(capacity: 10_000))

    /// Opens the subscriptions of an embedded cloud.
    init(at directory: URL) throws {
        // An unreadable subscription is left out. Its device makes it again.
        let storage = try SQLiteSubscriptionStorage(at: directory) { owner, content in
            guard let subscription = try? JSONDecoder().decode(Subscription.self, from: content) else { return nil }
            return Self.row(subscription, owner, content)
        }
        (self.storage, unreadable) = (storage, storage.unreadable)
    }

    /// Returns the place of changes for a moved row; `nil` where the subscription is for something that can't change.
    static func place(ofMoved row: MovedRow) -> StoredSubscription.Place? {
        func text(_ place: Int) -> String { String(decoding: row[place].data ?? Data(), as: UTF8.self) }
        guard let environment = StoreEnvironment(rawValue: text(2)),
            let scope = DatabaseScope(rawValue: Int(row[3].number ?? -1)), let content = row[5].data,
            let subscription = try? JSONDecoder().decode(Subscription.self, from: content)
        else { return nil }
        let owner = Owner(account: text(0), container: text(1), environment: environment, scope: scope)
        return Self.row(subscription, owner, content).place
    }

    init(_ storage: any SubscriptionStorage) { (self.storage, unreadable) = (storage, UnreadableRows()) }

    /// Removes the subscriptions and devices of accounts that are gone.
    ///
    /// - Throws: `CloudError` `internalError`.
    func forgetAccounts(goneFrom cloud: EmbeddedCloud) async throws(CloudError) {
        for account in try await storage.accounts() where try await cloud.account(id: account) == nil {
            try await storage.removeAccount(account)
        }
    }

    // Subscriptions

    func subscriptions(of owner: Owner) async throws(CloudError) -> [Subscription] {
        try await storage.subscriptions(of: owner).compactMap { read($0) }
    }

    func subscription(_ id: String, of owner: Owner) async throws(CloudError) -> Subscription? {
        try await storage.subscription(id, of: owner).flatMap { read($0) }
    }

    /// - Throws: `CloudError` `limitExceeded`, `internalError`.
    func save(_ subscription: Subscription, of owner: Owner) async throws(CloudError) {
        let content: Data
        do {
            content = try JSONEncoder().encode(subscription)
        } catch {
            throw CloudError(.internalError, "a subscription can't be encoded: \(error)")
        }
        guard try await storage.save(Self.row(subscription, owner, content), most: Self.subscriptionsMost) else {
            throw CloudError(.limitExceeded, "an account has \(Self.subscriptionsMost) subscriptions in a database at the most")
        }
    }

    /// - Returns: Whether there was one.
    /// - Throws: `CloudError` `internalError`.
    func remove(_ id: String, of owner: Owner) async throws(CloudError) -> Bool { try await storage.remove(id, of: owner) }

    /// Returns whether there may be a subscription to changes in a zone. Returns at once.
    func mayConcern(_ zone: ChangedZone) -> Bool { storage.mayConcern(zone) }

    /// Returns the subscriptions to changes of some record types in a zone.
    ///
    /// - Parameter types: `nil` for all types.
    func interests(in zone: ChangedZone, types: Set<String>?) async throws(CloudError) -> [Interest] {
        try await storage.subscriptions(to: zone, types: types).compactMap { row in
            read(row).map { Interest(owner: row.owner, subscription: $0) }
        }
    }

    private func read(_ row: StoredSubscription) -> Subscription? {
        decoded.withLock { decoded in
            if let known = decoded[row.content] { return known }
            // An unreadable subscription is left out. Its device makes it again.
            guard let subscription = try? JSONDecoder().decode(Subscription.self, from: row.content) else { return nil }
            decoded[row.content] = subscription
            return subscription
        }
    }

    private static func row(_ subscription: Subscription, _ owner: Owner, _ content: Data) -> StoredSubscription {
        StoredSubscription(owner: owner, id: subscription.id, place: place(of: subscription, owner), content: content)
    }

    /// Returns the place of changes; `nil` for a subscription to what can't change.
    private static func place(of subscription: Subscription, _ owner: Owner) -> StoredSubscription.Place? {
        let zoneOwner: String
        switch owner.scope {
        case .public: zoneOwner = ""
        case .private: zoneOwner = EmbeddedCloud.userRecordName(owner.account, in: owner.container)
        case .shared:
            guard let named = subscription.zone?.ownerName else { return nil }
            zoneOwner = named
        }
        let isOfAll = subscription.kind == .query && (subscription.isZoneWide || subscription.zoneName == nil)
        return StoredSubscription.Place(
            zoneOwner: zoneOwner, zone: isOfAll ? nil : subscription.zoneName,
            recordType: subscription.kind == .query ? subscription.recordType ?? "" : nil)
    }

    // Devices

    func devices(of owner: Owner) async throws(CloudError) -> [Device] {
        try await storage.devices(of: owner.account, container: owner.container, environment: owner.environment)
    }

    func has(_ device: Device) async throws(CloudError) -> Bool { try await storage.has(device) }

    /// Adds a device. If the account has too many, its oldest one is removed.
    ///
    /// - Throws: `CloudError` `internalError`.
    func add(_ device: Device) async throws(CloudError) { try await storage.add(device, most: Self.devicesMost) }
}
