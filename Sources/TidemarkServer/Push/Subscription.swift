import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkWire

/// A subscription to changes, as `CKSubscription`.
struct Subscription: Sendable, Codable, Hashable {
    enum Kind: String, Codable, Sendable { case query, zone }
    enum Event: String, Codable, CaseIterable, Sendable {
        case create, update, delete

        /// The event's number in frames of the mailbox.
        var number: Int64 { self == .create ? 1 : self == .update ? 2 : 3 }
    }

    let id: String
    let kind: Kind
    /// The record type of a ``Kind/query`` subscription.
    var recordType: String?
    /// The query as it was given, a JSON text.
    var query: String?
    var hasFilters = false
    var zoneName: String?
    var ownerName: String?
    var isZoneWide = false
    var events: [Event]
    var firesOnce = false
    /// The notification as it was given, a JSON text.
    var notification: String?
    /// The text of the notification.
    var alert: String?

    var zone: CloudZoneID? { zoneName.map { CloudZoneID($0, owner: ownerName ?? CloudZoneID.defaultOwner) } }
}

extension Subscription {
    /// The most bytes of a subscription: its query, its notification and its names.
    static let sizeMost = 16_384
    private static let alertMost = 1_024
    private static let nameMost = 255

    /// - Parameter scope: The database of the subscription.
    /// - Throws: `CloudError` `invalidArguments`.
    init(_ node: JSONNode, in scope: DatabaseScope) throws(CloudError) {
        id = try node.string("subscriptionID") ?? UUID().uuidString.lowercased()
        guard (1...Self.nameMost).contains(id.utf8.count) else {
            throw node.refusal("has a subscriptionID that is not 1 to \(Self.nameMost) bytes long")
        }
        let type = try node.required("subscriptionType")
        guard let kind = Kind(rawValue: try type.asString()) else { throw type.refusal("is neither query nor zone") }
        self.kind = kind
        if let given = node["zoneID"] {
            let zone = try CloudZoneID(given)
            try Self.check(zone.zoneName, given, "zoneName")
            try Self.check(zone.ownerName, given, "ownerRecordName")
            (zoneName, ownerName) = (zone.zoneName, zone.ownerName)
        }
        if scope == .shared, ownerName == nil || ownerName == CloudZoneID.defaultOwner {
            throw node.refusal("lacks a 'zoneID' with an 'ownerRecordName', which one in the shared database needs")
        }
        isZoneWide = try node.bool("zoneWide") ?? false
        firesOnce = try node.bool("firesOnce") ?? false
        events = []
        for event in try node["firesOn"]?.asArray(most: 3) ?? [] {
            guard let event = Event(rawValue: try event.asString()) else {
                throw event.refusal("is not one of create, update, delete")
            }
            events.append(event)
        }
        switch kind {
        case .query:
            let query = try node.required("query")
            let type = try query.required("recordType").asString()
            try Self.check(type, query, "recordType")
            recordType = type
            // The query is read now, so that an invalid one is refused.
            let read = try CloudQuery(node, zone: zone ?? .default) { _ in [:] }
            hasFilters = !read.filters.isEmpty
            self.query = query.text
            guard !events.isEmpty else { throw node.refusal("lacks the member 'firesOn': some of create, update, delete") }
        case .zone:
            guard zone != nil else { throw node.refusal("lacks the member 'zoneID', which a subscription to a zone needs") }
            events = Event.allCases
        }
        if let info = node["notificationInfo"] {
            guard info.isObject else { throw info.refusal("is not an object") }
            notification = info.text
            alert = try info.string("alertBody")
            if let alert, alert.utf8.count > Self.alertMost {
                throw info.refusal("has an alertBody of more than \(Self.alertMost) bytes")
            }
        }
        let texts = [id, recordType, query, zoneName, ownerName, notification]
        let size = texts.reduce(0) { $0 + ($1?.utf8.count ?? 0) }
        guard size <= Self.sizeMost else {
            throw node.refusal("has \(size) bytes with its query and notificationInfo, and \(Self.sizeMost) is the most")
        }
    }

    private static func check(_ name: String, _ node: JSONNode, _ member: String) throws(CloudError) {
        guard (1...nameMost).contains(name.utf8.count) else {
            throw node.refusal("has a \(member) that is not 1 to \(nameMost) bytes long")
        }
    }

    func write(_ json: inout JSONWriter) {
        json.object { json in
            json.member("subscriptionID", id)
            json.member("subscriptionType", kind.rawValue)
            if let zone { json.member("zoneID") { zone.writeMembers(&$0) } }
            if kind == .query {
                json.member("zoneWide", isZoneWide)
                if let query {
                    json.name("query")
                    json.raw(query)
                }
                json.list("firesOn") { for event in events { $0.string(event.rawValue) } }
                json.member("firesOnce", firesOnce)
            }
            if let notification {
                json.name("notificationInfo")
                json.raw(notification)
            }
        }
    }
}
