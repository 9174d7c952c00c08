import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkConsole
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Finds the subscribers of a change, and puts notifications into the mailbox.
///
/// A notification is a hint to fetch. If something can't be read or stored, nobody is notified, and devices find the change with
/// their next fetch. The log of deliveries has the number of notified devices.
struct SubscriptionMatcher: Sendable {
    let cloud: EmbeddedCloud
    let subscriptions: SubscriptionStore
    let mailbox: any NotificationStorage
    let deliveries: DeliveryLog

    /// The most reads of the cloud for the summary of one request. Subscribers beyond that are not notified.
    private static let looksMost = 200

    /// The results of reads for one summary.
    private struct Findings {
        var looksLeft = SubscriptionMatcher.looksMost
        /// The records that a subscriber sees in another owner's zone; `nil` where they don't see the zone.
        var seen: [SubscriptionStore.Owner: Set<String>?] = [:]
        var types: [String: CloudSchema.RecordType]?

        /// Returns whether another read is allowed, and counts it.
        mutating func mayLook() -> Bool {
            guard looksLeft > 0 else { return false }
            looksLeft -= 1
            return true
        }
    }

    func tell(_ summary: NotificationDispatcher.ChangeSummary) async {
        // A deletion without a type concerns subscriptions to all types.
        let types = summary.changes.contains { $0.type.isEmpty } ? nil : Set(summary.changes.map(\.type))
        var findings = Findings()
        guard let interests = try? await subscriptions.interests(in: summary.changedZone, types: types) else { return }
        for interest in interests {
            let changes = await changes(for: interest, summary, &findings)
            guard !changes.isEmpty else { continue }
            let (owner, subscription) = (interest.owner, interest.subscription)
            let devices = (try? await subscriptions.devices(of: owner)) ?? []
            for change in changes {
                if subscription.firesOnce {
                    // Of several servers, the one that removes a one-time subscription notifies its subscriber.
                    guard let isRemoved = try? await subscriptions.remove(subscription.id, of: owner), isRemoved else { break }
                }
                guard !devices.isEmpty else { continue }
                let frame = Self.frame(interest, change, summary)
                var delivered = 0
                for device in devices {
                    if (try? await mailbox.put(frame, for: device.box)) != nil { delivered += 1 }
                }
                deliveries.record(
                    Delivery(
                        at: Timestamp.now(), container: owner.container, environment: owner.environment.rawValue,
                        account: owner.account, subscription: subscription.id, event: change.event.rawValue,
                        delivered: delivered, devices: devices.count))
            }
        }
    }

    /// Returns the zone's name for a subscriber.
    private static func zone(_ summary: NotificationDispatcher.ChangeSummary, _ owner: SubscriptionStore.Owner) -> CloudZoneID {
        owner.scope == .public ? CloudZoneID(summary.zoneName) : CloudZoneID(summary.zoneName, owner: summary.zoneOwner)
    }

    /// Returns the changes of which a subscriber is notified: only changes that they can see.
    private func changes(
        for interest: SubscriptionStore.Interest, _ summary: NotificationDispatcher.ChangeSummary, _ findings: inout Findings
    ) async -> [NotificationDispatcher.ChangeSummary.Change] {
        let subscription = interest.subscription
        var wanted = summary.changes.filter { change in
            guard subscription.events.contains(change.event) else { return false }
            // A deleted record can't be compared with filters.
            if change.event == .delete, subscription.hasFilters { return false }
            guard subscription.kind == .query else { return true }
            return change.type == subscription.recordType || (change.event == .delete && change.type.isEmpty)
        }
        guard !wanted.isEmpty else { return [] }
        if subscription.hasFilters {
            let found = await found(interest, wanted.map(\.record), summary, &findings)
            return wanted.filter { found.contains($0.record) }
        }
        // Subscribers see all of their own zones and of the public database.
        guard interest.owner.scope == .shared else { return wanted }
        guard let seen = await seen(by: interest.owner, summary, &findings) else { return [] }
        // Whether they could see a deleted record can't be found out any more, so its name is not told. The feed of changes tells
        // it to those who could.
        wanted.removeAll { !seen.contains($0.record) }
        return wanted
    }

    private func database(of owner: SubscriptionStore.Owner) async -> EmbeddedDatabase? {
        guard (try? await cloud.open(owner.container, environment: owner.environment)) != nil else { return nil }
        return try? cloud.database(owner.scope, of: owner.container, environment: owner.environment, account: owner.account)
    }

    /// Returns the records of the summary that a subscriber sees, and reads them once; `nil` where they don't see the zone.
    private func seen(
        by owner: SubscriptionStore.Owner, _ summary: NotificationDispatcher.ChangeSummary, _ findings: inout Findings
    ) async -> Set<String>? {
        if let known = findings.seen[owner] { return known }
        guard findings.mayLook() else { return nil }
        let names = Array(Set(summary.changes.filter { $0.event != .delete }.map(\.record)))
        var seen: Set<String>?
        if let database = await database(of: owner),
            let found = try? await database.lookup(names, in: Self.zone(summary, owner), desiredKeys: [])
        {
            var names: Set<String> = []
            for case .success(let record) in found { names.insert(record.id.recordName) }
            seen = names
        }
        findings.seen.updateValue(seen, forKey: owner)
        return seen
    }

    /// Returns the records that a subscription's query finds.
    private func found(
        _ interest: SubscriptionStore.Interest, _ names: [String], _ summary: NotificationDispatcher.ChangeSummary,
        _ findings: inout Findings
    ) async -> Set<String> {
        let owner = interest.owner
        guard let text = interest.subscription.query, let database = await database(of: owner), findings.mayLook() else {
            return []
        }
        let zone = Self.zone(summary, owner)
        if findings.types == nil {
            findings.types = (try? await cloud.schema(of: owner.container, environment: owner.environment))?.types ?? [:]
        }
        let types = findings.types ?? [:]
        let read = try? JSONText.read(
            JSONWriter.encoded { json in
                json.object {
                    $0.name("query")
                    $0.raw(text)
                }
            },
            { node throws(CloudError) in
                try CloudQuery(node, zone: zone) { types[$0]?.fields.compactMapValues(\.fieldType) ?? [:] }
            })
        guard var query = read else { return [] }
        query.sorts = []
        let filters = query.filters
        var found: Set<String> = []
        // A filter's list of values has a limit.
        for start in stride(from: 0, to: names.count, by: Self.namesAtOnce) {
            if start > 0 { guard findings.mayLook() else { break } }
            let some = names[start..<min(start + Self.namesAtOnce, names.count)]
            let named = CloudValue.list(some.map { CloudValue.string($0) }, of: .string)
            query.filters = filters + [CloudQuery.Filter(.recordName, .isIn, named)]
            let answer = try? await database.query(query, in: zone, limit: some.count, desiredKeys: [], continuation: nil)
            for record in answer?.records ?? [] { found.insert(record.id.recordName) }
        }
        return found
    }

    private static let namesAtOnce = 50

    private static func frame(
        _ interest: SubscriptionStore.Interest, _ change: NotificationDispatcher.ChangeSummary.Change,
        _ summary: NotificationDispatcher.ChangeSummary
    ) -> [UInt8] {
        let (subscriber, subscription) = (interest.owner, interest.subscription)
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
                    $0.member("rid", change.record)
                    $0.member("zid", summary.zoneName)
                    $0.member("zoid", summary.isPublic ? user : summary.zoneOwner)
                    $0.member("dbs", Int64(subscriber.scope.rawValue))
                    $0.member("fo", change.event.number)
                }
            }
        }
        return json.bytes
    }
}
