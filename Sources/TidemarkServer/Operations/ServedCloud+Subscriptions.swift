import Foundation
import HTTPTypes
import ServiceLifecycle
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// Subscriptions, and the ways to be notified of changes.
extension ServedCloud {
    private func owner(_ call: Call) throws(CloudError) -> SubscriptionStore.Owner {
        guard let account = call.caller.account else { throw CloudError(.notAuthenticated, "request needs authorization") }
        return .init(
            account: account, container: call.container, environment: call.environment, scope: call.scope ?? .private)
    }

    func listSubscriptions(_ call: Call) async throws -> Reply {
        let owner = try owner(call)
        let found = try await subscriptions.subscriptions(of: owner)
        return .object { $0.list("subscriptions") { for it in found { it.write(&$0) } } }
    }

    private static func writeMissing(_ id: String, _ json: inout JSONWriter, _ dialect: WireDialect) {
        json.object {
            $0.member("subscriptionID", id)
            CloudError(.unknownItem, "there is no such subscription").writeMembers(&$0, dialect)
        }
    }

    func lookupSubscriptions(_ call: Call) async throws -> Reply {
        let ids = try call.read { node throws(CloudError) in
            var ids: [String] = []
            for node in try node.required("subscriptions").asArray(most: Self.limits.operationsPerRequest) {
                ids.append(try node.required("subscriptionID").asString())
            }
            return ids
        }
        let owner = try owner(call)
        let dialect = dialect(call)
        var subscriptions: [String: Subscription] = [:]
        for subscription in try await self.subscriptions.subscriptions(of: owner) {
            subscriptions[subscription.id] = subscription
        }
        let known = subscriptions
        return .object {
            $0.list("subscriptions") { json in
                for id in ids {
                    guard let found = known[id] else {
                        Self.writeMissing(id, &json, dialect)
                        continue
                    }
                    found.write(&json)
                }
            }
        }
    }

    func modifySubscriptions(_ call: Call) async throws -> Reply {
        let wanted = try call.read { node throws(CloudError) in
            var wanted: [(subscription: Subscription?, id: String)] = []
            for node in try node.required("operations").asArray(most: Self.limits.operationsPerRequest) {
                let kind = try node.required("operationType")
                let given = try node.required("subscription")
                if kind.isString("delete") {
                    wanted.append((nil, try given.required("subscriptionID").asString()))
                } else if kind.isString("create") || kind.isString("update") {
                    let subscription = try Subscription(given, in: call.scope ?? .private)
                    wanted.append((subscription, subscription.id))
                } else {
                    throw kind.refusal("is not one of create, update, delete")
                }
            }
            return wanted
        }
        let owner = try owner(call)
        let dialect = dialect(call)
        var json = JSONWriter()
        json.beginObject()
        json.name("subscriptions")
        json.beginArray()
        for (subscription, id) in wanted {
            do throws(CloudError) {
                if let subscription {
                    try await subscriptions.save(subscription, of: owner)
                    subscription.write(&json)
                } else if try await subscriptions.remove(id, of: owner) {
                    json.object {
                        $0.member("subscriptionID", id)
                        $0.member("deleted", true)
                    }
                } else {
                    Self.writeMissing(id, &json, dialect)
                }
            } catch {
                json.object {
                    $0.member("subscriptionID", id)
                    error.writeMembers(&$0, dialect)
                }
            }
        }
        json.endArray()
        json.endObject()
        return .json(json.bytes)
    }

    // Devices

    /// Microseconds for which an address of the mailbox is valid: 30 days.
    private static let mailboxTokenAge: Int64 = 30 * 86_400 * 1_000_000
    private static let mailboxTokenPurpose = "courier"

    /// The content of a mailbox address.
    private struct MailboxToken: Codable {
        let device: SubscriptionStore.Device
        /// The credential with which the address was made. The address ends with it.
        let credential: String
    }

    func createToken(_ call: Call) async throws -> Reply {
        let environment = try call.read { node throws(CloudError) in
            let environment = try node.required("apnsEnvironment")
            let name = try environment.asString()
            guard (1...64).contains(name.utf8.count) else { throw environment.refusal("is not 1 to 64 bytes long") }
            return name
        }
        let owner = try owner(call)
        let token = Hexadecimal.text(EmbeddedCloud.systemRandom(32))
        let device = SubscriptionStore.Device(
            token: token, account: owner.account, container: owner.container, environment: owner.environment)
        try await subscriptions.add(device)
        let pass = MailboxToken(device: device, credential: call.caller.credential.text)
        let address = access.signedText(
            try JSONEncoder().encode(pass), for: Self.mailboxTokenPurpose, until: Self.now + Self.mailboxTokenAge)
        return .object {
            $0.member("apnsEnvironment", environment)
            $0.member("apnsToken", token)
            $0.member("webcourierURL", call.baseURL + "/courier/" + address)
        }
    }

    func registerToken(_ call: Call) async throws -> Reply {
        let token = try call.read { node throws(CloudError) in
            _ = try node.required("apnsEnvironment").asString()
            return try node.required("apnsToken").asString()
        }
        guard (1...256).contains(token.utf8.count) else {
            throw CloudError(.invalidArguments, "apnsToken is not 1 to 256 bytes long")
        }
        let owner = try owner(call)
        try await subscriptions.add(
            .init(token: token, account: owner.account, container: owner.container, environment: owner.environment))
        return .object { _ in }
    }

    /// The time after which a wait is answered without a notification, so that the client knows the connection still works.
    private static let patience = Duration.seconds(50)

    /// Returns the device of a mailbox address, if it may still be notified.
    private func device(_ capability: String) async throws -> SubscriptionStore.Device {
        // The error is the same for everything that can be wrong with the address.
        let dead = CloudError(.unknownItem, "the address is altered or has expired: make a token with tokens/create")
        try await access.refresh()
        guard let data = try access.open(capability, for: Self.mailboxTokenPurpose),
            let pass = try? JSONDecoder().decode(MailboxToken.self, from: data),
            let credential = Credential(text: pass.credential), try await access.isGood(credential)
        else { throw dead }
        let device = pass.device
        guard try await subscriptions.has(device), try access.hasContainer(device.container),
            try await cloud.account(id: device.account)?.status == .available
        else { throw dead }
        return device
    }

    /// Waits for a notification. The answer is empty if none comes for a while, or the device waits again.
    func wait(_ call: Call) async throws -> Reply {
        let device = try await device(call.parameters["capability"] ?? "")
        try waits.enter(device.account)
        defer { waits.leave(device.account) }
        let result = await first(within: Self.patience) { await next(for: device) }
        let frame = try result?.get()
        if Task.isCancelled, let frame {
            // The client is gone, so the notification is put back.
            try await mailbox.putBack(frame, for: device.box)
            throw CancellationError()
        }
        return Reply(body: frame.map { .json($0) } ?? .none)
    }

    /// Returns the next notification for a device; `nil` when there is none.
    private func next(for device: SubscriptionStore.Device) async -> Result<[UInt8], CloudError>? {
        do throws(CloudError) {
            return try await mailbox.take(for: device.box).map { .success($0) }
        } catch {
            return .failure(error)
        }
    }

    /// Waits until a database has changed since a cursor.
    func awaitChange(_ call: Call) async throws -> Reply {
        // The public database, too, needs an account: the limits count waits by account.
        guard let account = call.caller.account else { throw CloudError(.notAuthenticated, "request needs authorization") }
        let database = try await database(call)
        guard let known = call.query["cursor"] else { return Self.changeReply(try await cursor(database), isChanged: false) }
        try waits.enter(account)
        defer { waits.leave(account) }
        // Listening begins before the look, so that no change is missed in between.
        let notifications = try await database.notifications()
        var (cursor, isChanged) = try await look(database, since: known)
        if !isChanged {
            let notification: Void? = await first(within: Self.patience) {
                for await _ in notifications { return () }
                return nil
            }
            if notification != nil { (cursor, isChanged) = (try await self.cursor(database), true) }
        }
        return Self.changeReply(cursor, isChanged: isChanged)
    }

    private static func changeReply(_ cursor: String, isChanged: Bool) -> Reply {
        .object {
            $0.member("cursor", cursor)
            $0.member("changed", isChanged)
        }
    }

    /// Returns the present cursor, and whether anything that the caller sees has changed since an earlier one.
    private func look(
        _ database: EmbeddedDatabase, since known: String
    ) async throws(CloudError) -> (cursor: String, isChanged: Bool) {
        guard database.scope != .public else { return ("public", known != "public") }
        do throws(CloudError) {
            let changes = try await database.databaseChanges(since: CloudToken(rawValue: known), limit: nil)
            guard !changes.moreComing, changes.changed.isEmpty, changes.deleted.isEmpty, changes.purged.isEmpty else {
                return (try await cursor(database), true)
            }
            return (changes.token.rawValue, false)
        } catch {
            // The meaning of the earlier cursor is lost, so something may have changed.
            guard error.code == .changeTokenExpired || error.code == .invalidArguments else { throw error }
            return (try await cursor(database), true)
        }
    }

    private func cursor(_ database: EmbeddedDatabase) async throws(CloudError) -> String {
        database.scope == .public ? "public" : try await lastToken(database).rawValue
    }

    /// Returns the value, or `nil` where the time runs out or the server ends first.
    private func first<Value: Sendable>(
        within patience: Duration, _ body: @escaping @Sendable () async -> Value?
    ) async -> Value? {
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Value?.self) { group in
                group.addTask { await body() }
                group.addTask {
                    // A cancelled sleep has ended, too.
                    try? await Task.sleep(for: patience)
                    return nil
                }
                var value = await group.next() ?? nil
                group.cancelAll()
                // A value that arrives as the time runs out was taken from the mailbox, and must not be lost.
                for await late in group { value = value ?? late }
                return value
            }
        }
    }

    // Notifying

    /// Notifies subscribers of the changes of an answered request.
    func tell(_ call: Call, _ request: WireModify, _ outcomes: [RecordOutcome], _ database: EmbeddedDatabase) async {
        var changes: [NotificationDispatcher.ChangeSummary.Change] = []
        for (item, outcome) in zip(request.items, outcomes) {
            let given = item.operation.record
            switch outcome {
            case .failed: continue
            case .deleted: changes.append(.init(record: given.id.recordName, type: given.type, event: .delete))
            case .saved(let record):
                let event: Subscription.Event = record.created == record.modified ? .create : .update
                changes.append(.init(record: given.id.recordName, type: record.type, event: event))
            }
        }
        let isOwn = request.zone.ownerName == CloudZoneID.defaultOwner
        dispatcher.tell(
            .init(
                container: call.container, environment: call.environment, isPublic: call.scope == .public,
                zoneName: request.zone.zoneName, zoneOwner: isOwn ? database.user ?? "" : request.zone.ownerName,
                changes: changes))
    }
}
