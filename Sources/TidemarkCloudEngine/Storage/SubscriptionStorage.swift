package import Foundation
package import TidemarkCloud
package import TidemarkModel

/// The account that has subscribed, and the database.
package struct SubscriptionOwner: Hashable, Sendable {
    package let account: String
    package let container: String
    package let environment: StoreEnvironment
    package let scope: DatabaseScope

    package init(account: String, container: String, environment: StoreEnvironment, scope: DatabaseScope) {
        (self.account, self.container, self.environment, self.scope) = (account, container, environment, scope)
    }
}

/// A row of a subscription.
package struct StoredSubscription: Hashable, Sendable {
    /// The place of the changes that a subscription is for.
    package struct Place: Hashable, Sendable {
        /// The user record name of the zone's owner; empty in the public database.
        package let zoneOwner: String
        /// `nil` for all zones of the owner.
        package let zone: String?
        /// `nil` for all record types.
        package let recordType: String?

        package init(zoneOwner: String, zone: String?, recordType: String?) {
            (self.zoneOwner, self.zone, self.recordType) = (zoneOwner, zone, recordType)
        }
    }

    package let owner: SubscriptionOwner
    /// Unique for the owner.
    package let id: String
    /// The place of the changes; `nil` for a subscription to what can't change.
    package let place: Place?
    /// The subscription, as the rules write it.
    package let content: Data

    package init(owner: SubscriptionOwner, id: String, place: Place?, content: Data) {
        (self.owner, self.id, self.place, self.content) = (owner, id, place, content)
    }
}

/// A device on which an account is notified.
package struct NotifiedDevice: Hashable, Codable, Sendable {
    package let token: String
    package let account: String
    package let container: String
    package let environment: StoreEnvironment

    package init(token: String, account: String, container: String, environment: StoreEnvironment) {
        (self.token, self.account, self.container, self.environment) = (token, account, container, environment)
    }

    package var box: NotificationBox { NotificationBox(account: account, token: token) }
}

/// A zone in which something has changed.
package struct ChangedZone: Hashable, Sendable {
    package let container: String
    package let environment: StoreEnvironment
    package let isPublic: Bool
    /// The user record name of the zone's owner; empty in the public database.
    package let owner: String
    package let zone: String

    package init(container: String, environment: StoreEnvironment, isPublic: Bool, owner: String, zone: String) {
        (self.container, self.environment, self.isPublic) = (container, environment, isPublic)
        (self.owner, self.zone) = (owner, zone)
    }

    /// The scopes of the databases in which clients see the zone.
    package var scopes: [DatabaseScope] { isPublic ? [.public] : [.private, .shared] }
}

/// Stores subscriptions and the devices to notify, as rows.
///
/// All calls may come from any task, several at a time. What a call has written is durable when it returns. Calls throw `CloudError`
/// `zoneBusy` or `serviceUnavailable` where the storage can't be asked for the moment, and `internalError` where it fails.
package protocol SubscriptionStorage: Sendable {
    // Subscriptions

    /// Returns an owner's subscriptions, by their identifiers.
    func subscriptions(of owner: SubscriptionOwner) async throws(CloudError) -> [StoredSubscription]
    func subscription(_ id: String, of owner: SubscriptionOwner) async throws(CloudError) -> StoredSubscription?
    /// Adds or replaces a subscription.
    ///
    /// - Returns: `false` where the owner has `most` others; then nothing is written.
    func save(_ subscription: StoredSubscription, most: Int) async throws(CloudError) -> Bool
    /// - Returns: Whether there was one. Of several calls at once, one gets `true`.
    func remove(_ id: String, of owner: SubscriptionOwner) async throws(CloudError) -> Bool
    /// Returns whether an account may have subscribed to changes in a zone. It asks memory only, and returns at once.
    func mayConcern(_ zone: ChangedZone) -> Bool
    /// Returns the subscriptions to changes in a zone.
    ///
    /// - Parameter types: Those to records of these types and to all records; `nil` for all.
    func subscriptions(to zone: ChangedZone, types: Set<String>?) async throws(CloudError) -> [StoredSubscription]

    // Devices

    /// Returns an account's devices, the oldest first.
    func devices(
        of account: String, container: String, environment: StoreEnvironment
    ) async throws(CloudError) -> [NotifiedDevice]
    func has(_ device: NotifiedDevice) async throws(CloudError) -> Bool
    /// Adds a device. Of an account that has more than `most` in a container, the oldest go.
    func add(_ device: NotifiedDevice, most: Int) async throws(CloudError)

    // Accounts

    /// Returns the accounts that have subscriptions or devices. O(subscriptions).
    func accounts() async throws(CloudError) -> [String]
    /// Removes the subscriptions and devices of an account.
    func removeAccount(_ account: String) async throws(CloudError)
}

/// The place where an account fetches one device's notifications. The token alone does not open it, since another account may
/// name the same token.
package struct NotificationBox: Hashable, Sendable {
    package let account: String
    package let token: String

    package init(account: String, token: String) { (self.account, self.token) = (account, token) }
}

/// Limits for notifications that no device has fetched.
package struct NotificationLimits: Sendable {
    package var framesOfBox = 100
    /// Bytes of one box, of all boxes of an account, and of all that a process keeps in memory.
    package var sizeOfBox = 64_000
    package var sizeOfAccount = 512_000
    package var size = 64_000_000
    /// Days, in a database.
    package var days = 30

    package init() {}

    /// The bytes that a notification counts.
    package static func cost(_ frame: [UInt8]) -> Int { frame.count + 128 }
}

/// Keeps notifications until devices fetch them, one for each wait. A device has one wait at a time: a new wait ends an earlier
/// one, which gets nothing.
///
/// A notification is a hint to look, and not the change itself: what can't be kept is dropped.
package protocol NotificationStorage: Sendable {
    /// Adds a notification. Where there is no room in the box, its oldest ones go.
    func put(_ frame: [UInt8], for box: NotificationBox) async throws(CloudError)
    /// Gives back a notification that was taken and has reached no device.
    func putBack(_ frame: [UInt8], for box: NotificationBox) async throws(CloudError)
    /// Waits for the next notification, and takes it; `nil` when the task is cancelled, or the device waits again, before there is one.
    func take(for box: NotificationBox) async throws(CloudError) -> [UInt8]?
}
