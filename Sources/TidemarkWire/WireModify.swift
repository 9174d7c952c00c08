import Foundation
package import TidemarkCloud
package import TidemarkModel

/// A `records/modify` as it has come, before anything is looked up for it.
package struct WireModify {
    /// One operation, and what of it is not a record's change.
    package struct Item {
        package var operation: RecordOperation
        /// Whether the request names the record; if not, the operation has a new name.
        package var isNamed: Bool
        /// Why it can't be done, whatever there is.
        package var failure: CloudError?
        /// What a new share is for: the root's name, and what it was when it was decided.
        package var share: WireShareRequest?
        /// Fields whose assets came without a receipt, with their checksums: they are what the record has already, or nothing.
        package var checksums: [String: [String]] = [:]
        package var desiredKeys: Set<String>?
    }

    /// In place of a digest: what follows is a checksum, and the digest is still to be found.
    package static let checksumMark = "checksum:"

    package var zone: CloudZoneID
    package var isAtomic: Bool?
    package var desiredKeys: Set<String>?
    package var numbersAsStrings: Bool
    package var clientToken: String?
    package var items: [Item]

    /// - Parameters:
    ///   - operations: As many as a request may have.
    ///   - schema: The types of the fields of a record type that are known.
    ///   - asset: The asset that a claim with a receipt or a digest is for.
    ///   - newName: The name of a record that comes without one.
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

/// What a request to make or change a share says.
package struct WireShareRequest {
    package var root: String?
    package var rootChangeTag: String?
    package var title: String?
    package var publicPermission: ShareParticipant.Permission?
    /// Those who are to take part, but for the owner; `nil` where they are not spoken of.
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
                        // What it is, is known when the record is.
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
    /// Names of fields; `nil` for all.
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

    /// The protocol spells it in two ways.
    package var numbersAsStrings: Bool {
        get throws(CloudError) {
            if let value = try bool("numbersAsStrings") { return value }
            return try bool("numberAsStrings") ?? false
        }
    }
}

// What a client of ours sends.

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

// What is answered.

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
