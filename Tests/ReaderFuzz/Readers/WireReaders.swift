import Foundation
import TidemarkCloud
import TidemarkModel
import TidemarkWire

/// Readers of the JSON that clients and servers send each other.
enum WireReaders {
    private static let zone = CloudZoneID("load", owner: "_0123456789abcdef0123456789abcdef")
    private static let dialect = WireDialect(isExtended: true)
    private static let schema: @Sendable (String) -> [String: FieldType] = { type in
        type == "Destination"
            ? [
                "caption": FieldType(.string), "rating": FieldType(.int64), "elevation": FieldType(.double),
                "createdAt": FieldType(.timestamp), "place": FieldType(.location), "image": FieldType(.asset),
                "trip": FieldType(.reference), "tags": FieldType(.string, isList: true), "data": FieldType(.bytes),
            ] : [:]
    }

    static func modify(_ bytes: [UInt8]) {
        _ = try? JSONText.read(bytes) { node throws(CloudError) in
            try WireModify(
                node, operations: 200, schema: schema,
                asset: { claim, _, _, _ throws(CloudError) in
                    CloudAsset(
                        digest: claim.digest ?? WireModify.checksumMark + (claim.fileChecksum ?? ""), size: claim.size ?? 0)
                },
                newName: { "new" })
        }
    }

    static func query(_ bytes: [UInt8]) {
        let read = { (bytes: [UInt8]) in
            try? JSONText.read(bytes) { node throws(CloudError) in try CloudQuery(node, zone: zone, schema: schema) }
        }
        guard let query = read(bytes) else { return }
        var json = JSONWriter()
        json.beginObject()
        json.name("query")
        query.write(&json, zone: zone)
        json.endObject()
        let again = read(json.bytes)
        demand(again == query, "a query is another one when it is written and read again: \(query) \(String(describing: again))")
    }

    static func answer(_ bytes: [UInt8]) {
        _ = try? JSONText.read(bytes) { node throws(CloudError) -> Void in
            keeps(node, { try CloudRecord(answered: $0, in: zone) }) { $1.write(&$0, dialect) }
            _ = try? RecordOutcome(answered: node, in: zone)
            _ = try? CloudError(answered: node, in: zone)?.code
            _ = try? RecordFailure(answered: node, in: zone)
            _ = try? ZoneChanges(answered: node, in: zone)
            keeps(node, { try DatabaseChanges(answered: $0) }) { $1.write(&$0, dialect) }
            if let zones = node["zones"] {
                for zone in zones.elements.prefix(20) { _ = try? ZoneChanges(answered: zone, in: Self.zone) }
            }
            if let records = node["records"] {
                for record in records.elements.prefix(20) { _ = try? RecordOutcome(answered: record, in: Self.zone) }
            }
        }
    }

    static func sharing(_ bytes: [UInt8]) {
        _ = try? JSONText.read(bytes) { node throws(CloudError) -> Void in
            keeps(node, { try ShareLink($0) }) { $1.write(&$0) }
            keeps(node, { try ShareAuditEntry($0) }) { $1.write(&$0) }
            keeps(node, { try ShareChange($0) }) { $1.write(&$0) }
            keeps(node, { try ShareMetadata($0) }) { $1.write(&$0, dialect) }
            keeps(node, { try CloudShare($0, in: zone) }) { $1.write(&$0, dialect) }
            keeps(node, { try UserIdentity(answered: $0) }) { $1.write(&$0) }
        }
    }

    /// Makes sure that a value that can be read is the same when it is written and read again.
    private static func keeps<Value: Equatable>(
        _ node: JSONNode, _ read: (JSONNode) throws -> Value, _ write: (inout JSONWriter, Value) -> Void
    ) {
        guard let value = try? read(node) else { return }
        var json = JSONWriter()
        write(&json, value)
        let again = (try? JSONText.read(json.bytes) { node throws(CloudError) in try? read(node) }) ?? nil
        demand(
            again == value,
            "a \(Value.self) is another one when it is written and read again: \(value) \(String(describing: again)) "
                + String(decoding: json.bytes, as: UTF8.self))
    }
}
