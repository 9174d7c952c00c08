import Foundation
import HTTPTypes
import ServiceLifecycle
import TidemarkAccess
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Subscriptions, and the ways to hear of what has changed.
extension ServedCloud {
    private func owner(_ call: Call) throws(CloudError) -> SubscriptionBook.Owner {
        guard let account = call.caller.account else { throw CloudError(.notAuthenticated, "request needs authorization") }
        return .init(
            account: account, container: call.container, environment: call.environment, scope: call.scope ?? .private)
    }

    func listSubscriptions(_ call: Call) async throws -> Reply {
        let owner = try owner(call)
        return .object { $0.list("subscriptions") { for it in subscriptions.subscriptions(of: owner) { it.write(&$0) } } }
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
        return .object {
            $0.list("subscriptions") { json in
                for id in ids {
                    guard let found = subscriptions.subscription(id, of: owner) else {
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
                    let subscription = try Subscription(given)
                    wanted.append((subscription, subscription.id))
                } else {
                    throw kind.refusal("is none of create, update, delete")
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
                    try subscriptions.save(subscription, of: owner)
                    subscription.write(&json)
                } else if try subscriptions.remove(id, of: owner) {
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

    /// How long an address of the courier is good, microseconds: a year.
    private static let courierAge: Int64 = 365 * 86_400 * 1_000_000

    func createToken(_ call: Call) async throws -> Reply {
        let environment = try call.read { node throws(CloudError) in try node.required("apnsEnvironment").asString() }
        let owner = try owner(call)
        let token = EmbeddedCloud.systemRandom(32).map { String(UInt16($0) + 0x100, radix: 16).dropFirst() }.joined()
        try subscriptions.add(
            .init(token: token, account: owner.account, container: owner.container, environment: owner.environment))
        let address = access.seal(Data(token.utf8), for: "courier", until: Self.now + Self.courierAge)
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
        try subscriptions.add(
            .init(token: token, account: owner.account, container: owner.container, environment: owner.environment))
        return .object { _ in }
    }

    /// How long a wait is answered with nothing after, so that who waits knows that the way is open.
    private static let patience = Duration.seconds(50)

    /// Waits for a notification; nothing, when there is none for a while.
    func wait(_ call: Call) async throws -> Reply {
        guard let data = access.open(call.parameters["capability"] ?? "", for: "courier") else {
            throw CloudError(.unknownItem, "the address is altered or has expired: make a token with tokens/create")
        }
        let device = String(decoding: data, as: UTF8.self)
        let frame = await first(within: Self.patience) { await courier.take(for: device) }
        return Reply(body: frame.map { .json($0) } ?? .none)
    }

    /// Waits until a database has changed since a cursor.
    func awaitChange(_ call: Call) async throws -> Reply {
        let database = try database(call)
        // Whoever listens first, and looks then, misses nothing.
        let news = try await database.notifications()
        guard let known = call.query["cursor"] else { return Self.news(try await cursor(database), isChanged: false) }
        var (cursor, isChanged) = try await look(database, since: known)
        if !isChanged {
            let ring: Void? = await first(within: Self.patience) {
                for await _ in news { return () }
                return nil
            }
            if ring != nil { (cursor, isChanged) = (try await self.cursor(database), true) }
        }
        return Self.news(cursor, isChanged: isChanged)
    }

    private static func news(_ cursor: String, isChanged: Bool) -> Reply {
        .object {
            $0.member("cursor", cursor)
            $0.member("changed", isChanged)
        }
    }

    /// The cursor of now, and whether anything that the caller sees has changed since another.
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
            // What it stood for nobody knows any more.
            guard error.code == .changeTokenExpired || error.code == .invalidArguments else { throw error }
            return (try await cursor(database), true)
        }
    }

    private func cursor(_ database: EmbeddedDatabase) async throws(CloudError) -> String {
        database.scope == .public ? "public" : try await lastToken(database).rawValue
    }

    /// What comes first: a value, the end of patience, or that of the server.
    private func first<Value: Sendable>(
        within patience: Duration, _ body: @escaping @Sendable () async -> Value?
    ) async -> Value? {
        await cancelWhenGracefulShutdown {
            await withTaskGroup(of: Value?.self) { group in
                group.addTask { await body() }
                group.addTask {
                    try? await Task.sleep(for: patience)
                    return nil
                }
                let value = await group.next() ?? nil
                group.cancelAll()
                return value
            }
        }
    }

    // Telling

    /// Tells those who have subscribed to it of what a request has changed.
    func tell(_ call: Call, _ request: WireModify, _ outcomes: [RecordOutcome], _ database: EmbeddedDatabase) async {
        let all = subscriptions.subscriptions(
            container: call.container, environment: call.environment, isPublic: call.scope == .public)
        guard !all.isEmpty else { return }
        let owner = request.zone.ownerName == CloudZoneID.defaultOwner ? database.user ?? "" : request.zone.ownerName
        for (item, outcome) in zip(request.items, outcomes) {
            let event: Subscription.Event
            var type = item.operation.record.type
            switch outcome {
            case .failed: continue
            case .deleted: event = .delete
            case .saved(let record):
                event = record.created == record.modified ? .create : .update
                type = record.type
            }
            for (subscriber, subscription) in all where subscription.events.contains(event) {
                let name = item.operation.record.id.recordName
                guard let zone = await concerned(subscriber, subscription, request.zone, owner: owner, type, name, event) else {
                    continue
                }
                if subscription.firesOnce { _ = try? subscriptions.remove(subscription.id, of: subscriber) }
                let frame = Self.frame(subscription, subscriber, record: name, zone: zone, event)
                for device in subscriptions.devices(
                    of: subscriber.account, container: subscriber.container, environment: subscriber.environment)
                { await courier.put(frame, for: device.token) }
            }
        }
    }

    /// The zone as a subscriber knows it, if they are to hear of a change in it; `nil` otherwise.
    private func concerned(
        _ subscriber: SubscriptionBook.Owner, _ subscription: Subscription, _ zone: CloudZoneID, owner: String, _ type: String,
        _ name: String, _ event: Subscription.Event
    ) async -> CloudZoneID? {
        guard
            let database = try? cloud.database(
                subscriber.scope, of: subscriber.container, environment: subscriber.environment, account: subscriber.account)
        else { return nil }
        let isOwn = database.user == owner
        guard subscriber.scope == .public || (subscriber.scope == .private) == isOwn else { return nil }
        let place = subscriber.scope == .public ? zone : CloudZoneID(zone.zoneName, owner: owner)
        if let wanted = subscription.zone, !(subscription.kind == .query && subscription.isZoneWide) {
            guard wanted.zoneName == zone.zoneName else { return nil }
            if subscriber.scope == .shared, wanted.ownerName != owner { return nil }
        }
        if subscription.kind == .query {
            guard type == subscription.recordType || (event == .delete && type.isEmpty) else { return nil }
        }
        // They hear of what they see, and of nothing else. What is gone can't be looked at any more: its zone can.
        guard event != .delete else {
            guard !subscription.hasFilters else { return nil }
            return (try? await database.lookup([], in: place, desiredKeys: [])) == nil ? nil : place
        }
        guard let text = subscription.query else {
            let found = try? await database.lookup([name], in: place, desiredKeys: []).first?.get()
            return found == nil ? nil : place
        }
        guard subscription.hasFilters else {
            let found = try? await database.lookup([name], in: place, desiredKeys: []).first?.get()
            return found == nil ? nil : place
        }
        let bytes = Array("{\"query\":\(text)}".utf8)
        let schema = try? await cloud.schema(of: subscriber.container, environment: subscriber.environment).types
        guard
            var query = try? JSONText.read(
                bytes,
                { node throws(CloudError) in
                    try CloudQuery(node, zone: place) { schema?[$0]?.fields.compactMapValues(\.fieldType) ?? [:] }
                })
        else { return nil }
        query.filters.append(.init(.recordName, .equals, .string(name)))
        let found = try? await database.query(query, in: place, limit: 1, desiredKeys: [], continuation: nil)
        return found?.records.isEmpty ?? true ? nil : place
    }

    private static func frame(
        _ subscription: Subscription, _ subscriber: SubscriptionBook.Owner, record: String, zone: CloudZoneID,
        _ event: Subscription.Event
    ) -> [UInt8] {
        var json = JSONWriter()
        let user = EmbeddedCloud.userRecordName(subscriber.account, in: subscriber.container)
        json.object { json in
            json.member("aps") {
                if let alert = subscription.alert {
                    $0.member("alert", alert)
                } else {
                    $0.member("content-available", 1 as Int64)
                }
            }
            json.member("ck") { json in
                json.member("ce", 2 as Int64)
                json.member("cid", subscriber.container)
                json.member("nid", UUID().uuidString.lowercased())
                json.member("ckuserid", user)
                json.member("aux") { _ in }
                json.member(subscription.kind == .query ? "qry" : "fet") {
                    $0.member("sid", subscription.id)
                    $0.member("rid", record)
                    $0.member("zid", zone.zoneName)
                    $0.member("zoid", zone.ownerName == CloudZoneID.defaultOwner ? user : zone.ownerName)
                    $0.member("dbs", Int64(subscriber.scope.rawValue))
                    $0.member("fo", event.number)
                }
            }
        }
        return json.bytes
    }
}
