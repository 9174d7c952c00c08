import Foundation
package import TidemarkCloud
package import TidemarkModel

/// A request `records/modify` in the form in which it arrived, before stored records are looked up.
package struct WireModify {
    /// An operation of the request, with its further members.
    package struct Item {
        package var operation: RecordOperation
        /// Whether the request names the record; if not, the operation has a new name.
        package var isNamed: Bool
        /// The error of an operation that can't be done in any case.
        package var failure: CloudError?
        /// The share, for an operation on the record of a share.
        package var share: WireShareRequest?
        /// The fields whose assets have no receipt, with their checksums. Such an asset must be one that the record has already.
        package var checksums: [String: [String]] = [:]
        package var desiredKeys: Set<String>?
    }

    /// The beginning of a text that stands for a digest. A checksum follows, by which the digest has to be looked up.
    package static let checksumMark = "checksum:"

    package var zone: CloudZoneID
    package var isAtomic: Bool?
    package var desiredKeys: Set<String>?
    package var numbersAsStrings: Bool
    package var clientToken: String?
    package var items: [Item]

    /// Reads a request.
    ///
    /// - Parameters:
    ///   - operations: The most operations of a request.
    ///   - schema: Returns the known types of the fields of a record type.
    ///   - asset: Returns the asset for a claim with a receipt or a digest.
    ///   - newName: Returns the name for a record that has none.
    /// - Throws: `CloudError` `invalidArguments`, `limitExceeded`.
    package init(
        _ node: JSONNode, operations most: Int, schema: (String) -> [String: FieldType],
        asset:
            @escaping (_ claim: AssetClaim, _ type: String, _ field: String, _ node: JSONNode) throws(CloudError) -> CloudAsset?,
        newName: () -> String
    ) throws(CloudError) {
        zone = try CloudZoneID(ofRequest: node)
        isAtomic = try node.bool("atomic")
        desiredKeys = try node.keys("desiredKeys")
        numbersAsStrings = try node.numbersAsStrings
        clientToken = try node["tidemark"]?.string("clientToken")
        items = []
        for node in try node.required("operations").asArray(most: most) {
            items.append(try Item(node, zone, schema, asset, newName))
        }
    }
}

/// The members of a request that makes or changes a share.
package struct WireShareRequest {
    package var root: String?
    package var rootChangeTag: String?
    package var title: String?
    package var publicPermission: ShareParticipant.Permission?
    /// The participants that the share is to have, without the owner; `nil` if the request does not change them.
    package var participants: [Participant]?

    package struct Participant {
        package var id: String?
        package var identity: UserIdentity
        package var role: ShareParticipant.Role
        package var permission: ShareParticipant.Permission
        package var acceptanceStatus: ShareParticipant.AcceptanceStatus?
    }

    fileprivate init(_ node: JSONNode) throws(CloudError) {
        root = try node["forRecord"]?.required("recordName").asString()
        rootChangeTag = try node["forRecord"]?.string("recordChangeTag")
        title = try node["fields"]?["cloudkit.title"]?["value"]?.asString()
        publicPermission = try node["publicPermission"].map { node throws(CloudError) in try .init(wire: node) }
        guard let list = node["participants"] else { return }
        var found: [Participant] = []
        for node in try list.asArray() {
            let role = try node["type"].map { node throws(CloudError) in try ShareParticipant.Role(wire: node) } ?? .privateUser
            let permission =
                try node["permission"].map { node throws(CloudError) in try ShareParticipant.Permission(wire: node) } ?? .readOnly
            found.append(
                Participant(
                    id: try node.string("participantId"), identity: try UserIdentity(node.required("userIdentity")), role: role,
                    permission: permission,
                    acceptanceStatus: try node["acceptanceStatus"].map { node throws(CloudError) in try .init(wire: node) }))
        }
        participants = found
    }
}

extension WireModify.Item {
    fileprivate init(
        _ node: JSONNode, _ zone: CloudZoneID, _ schema: (String) -> [String: FieldType],
        _ asset: @escaping (AssetClaim, String, String, JSONNode) throws(CloudError) -> CloudAsset?, _ newName: () -> String
    ) throws(CloudError) {
        let named = try node.required("operationType")
        guard let kind = RecordOperation.Kind(rawValue: try named.asString()) else {
            throw named.refusal("is not one of create, update, forceUpdate, replace, forceReplace, delete, forceDelete")
        }
        let given = try node.required("record")
        guard given.isObject else { throw given.refusal("is not an object") }
        var name = try given.string("recordName")
        if name == nil, kind == .create { name = newName() }
        guard let name else { throw given.refusal("lacks the member 'recordName'") }
        let type = try given.string("recordType")
        let makes = kind == .create || kind == .forceUpdate || kind == .forceReplace
        guard type != nil || !makes else { throw given.refusal("lacks the member 'recordType'") }
        if let own = given["zoneID"], try CloudZoneID(own).zoneName != zone.zoneName {
            throw own.refusal("is another zone than the request's")
        }
        let tag = try given.string("recordChangeTag")
        if kind == .update || kind == .replace || kind == .delete, tag == nil {
            throw CloudError(.invalidArguments, "\(given.place) missing required field 'recordChangeTag'")
        }
        var record = CloudRecord(CloudRecordID(name, in: zone), type: type ?? "", changeTag: tag)
        record.parent = try given["parent"]?.required("recordName").asString()
        var cleared: Set<String> = []
        var checksums: [String: [String]] = [:]
        let isShare = type == CloudShare.recordType
        if let fields = given["fields"], !isShare {
            guard fields.isObject else { throw fields.refusal("is not an object") }
            do throws(CloudError) {
                for (field, node) in fields.members {
                    var missing: [String] = []
                    let reader = WireValueReader(zone: zone) { claim, node throws(CloudError) in
                        if let found = try asset(claim, type ?? "", field, node) { return found }
                        // The asset can be found when the stored record is known.
                        missing.append(claim.fileChecksum ?? "")
                        return CloudAsset(digest: WireModify.checksumMark + (claim.fileChecksum ?? ""), size: claim.size ?? 0)
                    }
                    if node.isNull {
                        cleared.insert(field)
                        continue
                    }
                    switch try reader.field(node, known: { type.flatMap { schema($0)[field] } }) {
                    case .value(let value):
                        record.fields[field] = value
                        let encryption = try WireValueReader.encryption(node)
                        if !encryption.isEmpty { record.encryptedFields[field] = encryption }
                    case .cleared, .emptyList: cleared.insert(field)
                    }
                    if !missing.isEmpty { checksums[field] = missing }
                }
            } catch {
                failure = error
            }
        }
        operation = RecordOperation(kind, record, clearing: cleared)
        isNamed = given["recordName"] != nil
        self.checksums = checksums
        if isShare { share = try WireShareRequest(given) }
        desiredKeys = try node.keys("desiredKeys")
    }
}

extension JSONNode {
    /// Reads a list of field names; `nil` for all fields.
    package func keys(_ name: StaticString) throws(CloudError) -> Set<String>? {
        guard let list = self[name] else { return nil }
        var keys: Set<String> = []
        for key in try list.asArray(most: 500) {
            let text = try key.asString()
            guard text.utf8.count <= 255 else { throw key.refusal("is longer than 255 bytes") }
            keys.insert(text)
        }
        return keys
    }

    /// Whether the request asks for numbers as strings. The protocol has two spellings of this member.
    package var numbersAsStrings: Bool {
        get throws(CloudError) {
            if let value = try bool("numbersAsStrings") { return value }
            return try bool("numberAsStrings") ?? false
        }
    }
}

// Requests of Tidemark's client.

extension ModifyRecordsRequest {
    package func write(_ json: inout JSONWriter) {
        let dialect = WireDialect(isExtended: true)
        json.object {
            $0.member("zoneID") { zone.writeMembers(&$0) }
            $0.member("atomic", isAtomic)
            $0.writeKeys("desiredKeys", desiredKeys)
            if let clientToken { $0.member("tidemark") { $0.member("clientToken", clientToken) } }
            $0.list("operations") { for operation in operations { operation.write(&$0, dialect) } }
        }
    }
}

extension JSONWriter {
    package mutating func writeKeys(_ name: StaticString, _ keys: Set<String>?) {
        guard let keys else { return }
        list(name) { for key in keys.sorted() { $0.string(key) } }
    }
}

extension RecordOperation {
    fileprivate func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.object {
            $0.member("operationType", kind.rawValue)
            $0.member("record") {
                $0.member("recordName", record.id.recordName)
                if !isDeletion || !record.type.isEmpty { $0.member("recordType", record.type) }
                $0.member("recordChangeTag", record.changeTag)
                guard !isDeletion else { return }
                if let parent = record.parent { $0.member("parent") { $0.member("recordName", parent) } }
                $0.member("fields") {
                    for (name, value) in record.fields.sorted(by: { $0.key < $1.key }) {
                        $0.name(name)
                        value.write(&$0, zone: record.id.zone, dialect, encryption: record.encryptedFields[name] ?? []) { _ in nil
                        }
                    }
                    for name in cleared.sorted() where record.fields[name] == nil {
                        $0.name(name)
                        $0.object { writer in
                            writer.name("value")
                            writer.null()
                        }
                    }
                }
            }
        }
    }
}

// Answers.

extension RecordOutcome {
    package func write(_ json: inout JSONWriter, of id: CloudRecordID, _ dialect: WireDialect) {
        switch self {
        case .saved(let record): record.write(&json, dialect)
        case .deleted(let id): CloudRecord.writeDeleted(id, &json, dialect)
        case .failed(let error):
            json.object {
                $0.member("recordName", id.recordName)
                error.writeMembers(&$0, dialect)
            }
        }
    }

    package init(answered node: JSONNode, in zone: CloudZoneID) throws(CloudError) {
        if let error = try CloudError(answered: node, in: zone) {
            self = .failed(error)
        } else if try node.bool("deleted") == true {
            let zone = try node["zoneID"].map { node throws(CloudError) in try CloudZoneID(node) } ?? zone
            self = .deleted(CloudRecordID(try node.required("recordName").asString(), in: zone))
        } else {
            self = .saved(try CloudRecord(answered: node, in: zone))
        }
    }
}
