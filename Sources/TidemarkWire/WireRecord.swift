import Foundation
package import TidemarkCloud
package import TidemarkModel

extension CloudRecord {
    /// Writes the object of a record in an answer.
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.beginObject()
        json.member("recordName", id.recordName)
        json.member("recordType", type)
        json.member("recordChangeTag", changeTag)
        json.name("fields")
        json.beginObject()
        for (name, value) in fields.sorted(by: { $0.key < $1.key }) {
            json.name(name)
            value.write(&json, zone: id.zone, dialect, encryption: encryptedFields[name] ?? []) {
                dialect.downloadURL?($0, self, name)
            }
        }
        json.endObject()
        json.member("pluginFields") { _ in }
        created?.write(&json, "created", dialect)
        modified?.write(&json, "modified", dialect)
        json.member("deleted", false)
        json.member("zoneID") { id.zone.writeMembers(&$0) }
        if let parent { json.member("parent") { $0.member("recordName", parent) } }
        if let shareName {
            json.member("share") {
                $0.member("recordName", shareName)
                $0.member("zoneID") { id.zone.writeMembers(&$0) }
            }
            json.member("shortGUID", shortGUID)
        }
        share?.writeMembers(&json, dialect)
        json.endObject()
    }

    /// Reads a record of an answer.
    package init(answered node: JSONNode, in zone: CloudZoneID) throws(CloudError) {
        let zone = try node["zoneID"].map { node throws(CloudError) in try CloudZoneID(node) } ?? zone
        self.init(
            CloudRecordID(try node.required("recordName").asString(), in: zone), type: try node.required("recordType").asString(),
            changeTag: try node.string("recordChangeTag"))
        if let given = node["fields"] {
            let reader = WireValueReader(zone: zone) { claim, node throws(CloudError) in
                guard let digest = claim.digest, let size = claim.size else { throw node.refusal("names no digest") }
                return CloudAsset(digest: digest, size: size)
            }
            fields.reserveCapacity(given.memberCount)
            for (name, node) in given.members {
                do throws(CloudError) {
                    guard case .value(let value) = try reader.field(node, known: { nil }) else { continue }
                    fields[name] = value
                    let encryption = try WireValueReader.encryption(node)
                    if !encryption.isEmpty { encryptedFields[name] = encryption }
                } catch {
                    throw Self.unreadable(name, node, of: id, type, error)
                }
            }
        }
        parent = try node["parent"]?.required("recordName").asString()
        created = try node["created"].map { node throws(CloudError) in try Stamp(node) }
        modified = try node["modified"].map { node throws(CloudError) in try Stamp(node) }
        if let name = try node["share"]?.required("recordName").asString() {
            shareName = name
            shortGUID = try node.string("shortGUID")
        }
        if type == CloudShare.recordType, node["participants"] != nil { share = try CloudShare(node, in: zone) }
    }

    /// Returns the error for a record with an unreadable field. The record can't be used without the field, because the next save
    /// would delete the field's value.
    private static func unreadable(
        _ field: String, _ node: JSONNode, of id: CloudRecordID, _ type: String, _ error: CloudError
    ) -> CloudError {
        let place = "the field '\(field.prefix(64))' of \(type.prefix(64)) '\(id.recordName.prefix(255))'"
        if let name = node["type"]?.string, FieldType(wire: name) == nil, name != "UNKNOWN_LIST", name != "ENCRYPTED_BYTES" {
            return CloudError(
                .invalidArguments,
                "\(place) is of the type '\(name.prefix(40))', which this version does not know; a newer one may")
        }
        return CloudError(error.code, "\(place) can't be read: \(error.reason)")
    }

    /// Writes the object of a deleted record in an answer or a list of changes.
    package static func writeDeleted(
        _ id: CloudRecordID, type: String? = nil, _ json: inout JSONWriter, _ dialect: WireDialect
    ) {
        json.beginObject()
        json.member("recordName", id.recordName)
        if dialect.isExtended { json.member("recordType", type) }
        json.member("deleted", true)
        json.member("zoneID") { id.zone.writeMembers(&$0) }
        json.endObject()
    }
}

extension CloudRecord.Stamp {
    fileprivate func write(_ json: inout JSONWriter, _ name: StaticString, _ dialect: WireDialect) {
        json.member(name) {
            $0.member("timestamp", WireTime.milliseconds(time))
            $0.member("userRecordName", userRecordName)
            $0.member("deviceID", "2")
            if dialect.isExtended { $0.member("tidemark") { $0.member("microseconds", time) } }
        }
    }

    init(_ node: JSONNode) throws(CloudError) {
        let exact = try node["tidemark"]?.integer("microseconds")
        let time: Int64
        if let exact { time = exact } else { time = try WireTime.microseconds(node.required("timestamp")) }
        self.init(time: time, userRecordName: try node.required("userRecordName").asString())
    }
}
