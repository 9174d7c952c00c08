import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// The checks of what every ``SubscriptionStorage`` does.
package enum SubscriptionStorageContract {
    /// Makes a storage without subscriptions.
    package typealias Subject = @Sendable () async throws -> any SubscriptionStorage

    private static let container = "iCloud.org.example.journal"

    private static func owner(_ account: String, _ scope: DatabaseScope = .private) -> SubscriptionOwner {
        SubscriptionOwner(account: account, container: container, environment: .development, scope: scope)
    }

    private static func subscription(
        _ id: String, of owner: SubscriptionOwner, zone: String? = "Trip\0", zoneOwner: String = "_anna", type: String? = nil,
        content: String = "{}"
    ) -> StoredSubscription {
        StoredSubscription(
            owner: owner, id: id, place: .init(zoneOwner: zoneOwner, zone: zone, recordType: type), content: Data(content.utf8))
    }

    private static func changed(_ zone: String = "Trip\0", owner: String = "_anna", isPublic: Bool = false) -> ChangedZone {
        ChangedZone(container: container, environment: .development, isPublic: isPublic, owner: owner, zone: zone)
    }

    private static func device(
        _ token: String, of account: String = "anna", _ environment: StoreEnvironment = .development
    )
        -> NotifiedDevice
    {
        NotifiedDevice(token: token, account: account, container: container, environment: environment)
    }

    /// All checks.
    package static let checks: [StorageCheck<Subject>] = [
        StorageCheck("a subscription is its owner's, until it is replaced or removed") { open in
            let storage = try await open()
            let (anna, shared) = (owner("anna"), owner("anna", .shared))
            let first = subscription("b", of: anna)
            try requireEqual(try await storage.save(first, most: 9), true, "saved")
            try requireEqual(try await storage.save(subscription("a\0", of: anna), most: 9), true, "saved")
            try requireEqual(try await storage.save(subscription("b", of: shared, content: "2"), most: 9), true, "saved")
            try requireEqual(try await storage.subscriptions(of: anna).map(\.id), ["a\0", "b"], "subscriptions")
            try requireEqual(try await storage.subscription("b", of: anna), first, "one")
            try requireEqual(try await storage.subscription("b", of: owner("ben")), nil, "another's")
            let second = subscription("b", of: anna, zone: nil, type: "Note", content: "3")
            _ = try await storage.save(second, most: 9)
            try requireEqual(try await storage.subscription("b", of: anna), second, "replaced")
            try requireEqual(try await storage.remove("b", of: anna), true, "removed")
            try requireEqual(try await storage.remove("b", of: anna), false, "removed again")
            try requireEqual(try await storage.subscriptions(of: shared).count, 1, "another database's")
        },
        StorageCheck("an owner has a limited number of subscriptions, and may replace them") { open in
            let storage = try await open()
            let saved = try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<20 {
                    group.addTask { try await storage.save(subscription("\(number)", of: owner("anna")), most: 7) }
                }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try requireEqual(saved, 7, "saved of twenty")
            let kept = try await storage.subscriptions(of: owner("anna"))
            try requireEqual(kept.count, 7, "kept")
            try requireEqual(try await storage.save(kept[0], most: 7), true, "one again")
            try requireEqual(try await storage.save(subscription("x", of: owner("anna", .public)), most: 7), true, "elsewhere")
        },
        StorageCheck("a change matches subscriptions to its zone or all zones, and to its type or all types") { open in
            let storage = try await open()
            let all = [
                subscription("zone", of: owner("anna")), subscription("type", of: owner("anna"), type: "Note"),
                subscription("types", of: owner("anna"), zone: nil, type: "Note"),
                subscription("other", of: owner("anna"), zone: "Other"), subscription("guest", of: owner("ben", .shared)),
                subscription("public", of: owner("ben", .public), zone: nil, zoneOwner: "", type: "Note"),
                subscription("elsewhere", of: owner("cleo"), zoneOwner: "_cleo"),
            ]
            for one in all { _ = try await storage.save(one, most: 9) }
            func ids(_ zone: ChangedZone, _ types: Set<String>?) async throws -> [String] {
                try await storage.subscriptions(to: zone, types: types).map(\.id).sorted()
            }
            try requireEqual(try await ids(changed(), nil), ["guest", "type", "types", "zone"], "all types")
            try requireEqual(try await ids(changed(), ["Note", "X"]), ["guest", "type", "types", "zone"], "notes")
            try requireEqual(try await ids(changed(), ["X"]), ["guest", "zone"], "another type")
            try requireEqual(try await ids(changed(), []), ["guest", "zone"], "no type")
            try requireEqual(try await ids(changed("Third"), nil), ["types"], "another zone")
            try requireEqual(try await ids(changed("_defaultZone", owner: "", isPublic: true), ["Note"]), ["public"], "public")
            try requireEqual(try await ids(changed(owner: "_dora"), nil), [], "another owner")
            for one in all { try require(storage.mayConcern(changed()) || one.id.isEmpty, "it says that nobody is concerned") }
            try await storage.removeAccount("anna")
            try requireEqual(try await ids(changed(), nil), ["guest"], "without anna")
        },
        StorageCheck("if several callers remove a subscription at once, only one has removed it") { open in
            let storage = try await open()
            _ = try await storage.save(subscription("once", of: owner("anna")), most: 9)
            let removed = try await withThrowingTaskGroup(of: Bool.self) { group in
                for _ in 0..<20 { group.addTask { try await storage.remove("once", of: owner("anna")) } }
                return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
            }
            try requireEqual(removed, 1, "removed")
        },
        StorageCheck("an account has its latest devices, the oldest first, separately in each container") { open in
            let storage = try await open()
            for token in ["1\0", "2", "3", "2", "4"] { try await storage.add(device(token), most: 3) }
            try await storage.add(device("1\0", of: "ben"), most: 3)
            try await storage.add(device("p", .production), most: 3)
            func tokens(_ account: String = "anna", _ environment: StoreEnvironment = .development) async throws -> [String] {
                try await storage.devices(of: account, container: container, environment: environment).map(\.token)
            }
            try requireEqual(try await tokens(), ["2", "3", "4"], "devices")
            try requireEqual(try await tokens("ben"), ["1\0"], "devices of ben")
            try requireEqual(try await tokens("anna", .production), ["p"], "devices in production")
            try requireEqual(try await storage.has(device("2")), true, "a device")
            try requireEqual(try await storage.has(device("1\0")), false, "one that is gone")
            try requireEqual(try await storage.has(device("2", of: "ben")), false, "another's")
            _ = try await storage.save(subscription("a", of: owner("cleo")), most: 9)
            try requireEqual(Set(try await storage.accounts()), ["anna", "ben", "cleo"], "accounts")
            try await storage.removeAccount("anna")
            try requireEqual(try await tokens(), [], "devices of nobody")
            try requireEqual(Set(try await storage.accounts()), ["ben", "cleo"], "accounts that are left")
        },
    ]
}

/// The checks of what every ``NotificationStorage`` does.
package enum NotificationStorageContract {
    /// A storage of notifications that servers share, with limits.
    package struct Subject: Sendable {
        /// Makes another server's storage; where only one server can have it, the same storage.
        let storage: @Sendable (NotificationLimits) async throws -> any NotificationStorage

        package init(_ storage: @escaping @Sendable (NotificationLimits) async throws -> any NotificationStorage) {
            self.storage = storage
        }
    }

    private static let box = NotificationBox(account: "anna", token: "t\0")

    /// All checks.
    package static let checks: [StorageCheck<Subject>] = [
        StorageCheck("notifications are taken in order, and an undelivered one comes first again") { subject in
            let (storage, other) = (try await subject.storage(.init()), try await subject.storage(.init()))
            for byte: UInt8 in 1...3 { try await storage.put([byte, 0], for: box) }
            try requireEqual(try await other.take(for: box), [1, 0], "the first")
            try await other.putBack([1, 0], for: box)
            for byte: UInt8 in 1...3 { try requireEqual(try await storage.take(for: box), [byte, 0], "number \(byte)") }
        },
        StorageCheck("a waiting device gets the next notification, at any server") { subject in
            let (storage, other) = (try await subject.storage(.init()), try await subject.storage(.init()))
            for byte: UInt8 in 1...5 {
                async let taken = storage.take(for: box)
                try await other.put([byte], for: NotificationBox(account: "ben", token: "t\0"))
                try await other.put([byte], for: box)
                try requireEqual(try await taken, [byte], "what was waited for")
            }
            for byte: UInt8 in 1...5 {
                try requireEqual(
                    try await storage.take(for: NotificationBox(account: "ben", token: "t\0")), [byte], "ben's")
            }
        },
        StorageCheck("a device waits once, and a wait that is cancelled takes nothing") { subject in
            let (storage, other) = (try await subject.storage(.init()), try await subject.storage(.init()))
            // The task that ends first cancels the other.
            let frames = try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
                for storage in [storage, other] { group.addTask { try await storage.take(for: box) } }
                var frames = [try await group.next()]
                group.cancelAll()
                frames.append(try await group.next())
                return frames
            }
            for frame in frames { try requireEqual(frame ?? nil, nil, "what a wait has taken") }
            try await storage.put([7], for: box)
            try requireEqual(try await other.take(for: box), [7], "what was put then")
        },
        StorageCheck("the latest unfetched notifications are kept, with a limit for each account") { subject in
            let size = 1_000
            var limits = NotificationLimits()
            (limits.framesOfBox, limits.sizeOfBox, limits.sizeOfAccount) = (2, 5_000, 3 * (size + 200))
            let storage = try await subject.storage(limits)
            func frame(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: size) }
            let (one, other) = (NotificationBox(account: "anna", token: "1"), NotificationBox(account: "anna", token: "2"))
            let bens = NotificationBox(account: "ben", token: "1")
            for byte: UInt8 in 1...3 { try await storage.put(frame(byte), for: one) }
            for byte: UInt8 in 4...5 { try await storage.put(frame(byte), for: other) }
            try await storage.put(frame(6), for: bens)
            try await storage.put([UInt8](repeating: 9, count: 6_000), for: bens)
            for byte: UInt8 in 2...3 { try requireEqual(try await storage.take(for: one), frame(byte), "number \(byte)") }
            try requireEqual(try await storage.take(for: other), frame(4), "the fourth")
            try requireEqual(try await storage.take(for: bens), frame(6), "ben's")
            try await storage.put(frame(7), for: other)
            try requireEqual(try await storage.take(for: other), frame(7), "the seventh")
        },
    ]
}
