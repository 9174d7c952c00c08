package import TidemarkCloud
package import TidemarkModel

extension CloudShare {
    /// Writes the members that the record of a share has in addition to those of all records.
    package func writeMembers(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.member("publicPermission", publicPermission.wireName)
        json.list("participants") { for participant in participants { participant.write(&$0) } }
        if let owner {
            json.name("owner")
            owner.write(&json)
        }
        if let currentUser {
            json.name("currentUserParticipant")
            currentUser.write(&json)
        }
        json.member("shortGUID", shortGUID)
        if dialect.isExtended {
            json.member("tidemark") {
                if case .hierarchy(let root) = coverage { $0.member("root", root) }
                $0.member("title", title)
            }
        }
    }

    /// Writes a share as an object of its own.
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.beginObject()
        json.member("recordName", id.recordName)
        json.member("recordType", Self.recordType)
        json.member("recordChangeTag", changeTag)
        json.member("zoneID") { id.zone.writeMembers(&$0) }
        json.member("fields") {
            guard let title else { return }
            $0.name(Self.titleField)
            CloudValue.string(title).write(&$0, zone: id.zone, dialect) { _ in nil }
        }
        json.member("pluginFields") { _ in }
        json.member("deleted", false)
        writeMembers(&json, dialect)
        json.endObject()
    }

    /// Reads a share of an answer.
    package init(_ node: JSONNode, in zone: CloudZoneID) throws(CloudError) {
        let zone = try node["zoneID"].map { node throws(CloudError) in try CloudZoneID(node) } ?? zone
        let extra = node["tidemark"]
        self.init(
            CloudRecordID(try node.required("recordName").asString(), in: zone),
            coverage: try extra?.string("root").map { .hierarchy(root: $0) } ?? .zone, title: try extra?.string("title"),
            publicPermission: try .init(answered: node.required("publicPermission")),
            currentUser: try node["currentUserParticipant"].map { node throws(CloudError) in try ShareParticipant(node) },
            changeTag: try node.string("recordChangeTag"))
        for participant in try node.required("participants").asArray() { participants.append(try ShareParticipant(participant)) }
        shortGUID = try node.string("shortGUID")
    }
}

extension ShareParticipant {
    package func write(_ json: inout JSONWriter) {
        json.beginObject()
        json.member("participantId", id)
        json.name("userIdentity")
        identity.write(&json)
        json.member("type", role.wireName)
        json.member("permission", permission.wireName)
        json.member("acceptanceStatus", acceptanceStatus.wireName)
        json.endObject()
    }

    /// Reads a participant of an answer. A role, permission or status that this version does not know becomes `unknown`, which
    /// permits nothing.
    package init(_ node: JSONNode) throws(CloudError) {
        self.init(
            id: try node.required("participantId").asString(),
            identity: try UserIdentity(answered: node.required("userIdentity")),
            role: try Role(answered: node.required("type")), permission: try Permission(answered: node.required("permission")),
            acceptanceStatus: try AcceptanceStatus(answered: node.required("acceptanceStatus")))
    }
}

extension ShareParticipant.Role: WireNamed {
    package var wireName: String {
        switch self {
        case .owner: "OWNER"
        case .administrator: "ADMINISTRATOR"
        case .privateUser: "USER"
        case .publicUser: "PUBLIC_USER"
        case .unknown: "UNKNOWN"
        }
    }
}

extension ShareParticipant.Permission: WireNamed {
    package var wireName: String {
        switch self {
        case .none: "NONE"
        case .readOnly: "READ_ONLY"
        case .readWrite: "READ_WRITE"
        case .unknown: "UNKNOWN"
        }
    }
}

extension ShareParticipant.AcceptanceStatus: WireNamed {
    package var wireName: String {
        switch self {
        case .pending: "INVITED"
        case .accepted: "ACCEPTED"
        case .removed: "REMOVED"
        case .unknown: "UNKNOWN"
        }
    }
}

extension UserIdentity {
    package func write(_ json: inout JSONWriter) {
        json.beginObject()
        writeMembers(&json)
        json.endObject()
    }

    package func writeMembers(_ json: inout JSONWriter) {
        json.member("userRecordName", userRecordName)
        if let name { json.member("nameComponents") { name.writeMembers(&$0) } }
        if let lookUp {
            json.name("lookupInfo")
            lookUp.write(&json)
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        try self.init(answered: node)
        // A request must have a known way to look the person up.
        if let given = node["lookupInfo"] { lookUp = try UserLookUp(given) }
    }

    /// Reads an identity of an answer. A kind of look-up that this version does not know is left out.
    package init(answered node: JSONNode) throws(CloudError) {
        self.init(
            userRecordName: try node.string("userRecordName"),
            name: try node["nameComponents"].map { node throws(CloudError) in try PersonName(node) }, lookUp: nil)
        if let given = node["lookupInfo"], given.isObject { lookUp = try UserLookUp(known: given) }
    }
}

extension UserLookUp {
    package func write(_ json: inout JSONWriter) {
        json.object {
            switch self {
            case .emailAddress(let address): $0.member("emailAddress", address)
            case .phoneNumber(let number): $0.member("phoneNumber", number)
            case .userRecordName(let name): $0.member("userRecordName", name)
            }
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        guard let known = try UserLookUp(known: node) else {
            throw node.refusal("names nobody: one of emailAddress, phoneNumber, userRecordName was expected")
        }
        self = known
    }

    /// Reads a look-up; `nil` for an unknown kind.
    fileprivate init?(known node: JSONNode) throws(CloudError) {
        if let address = try node.string("emailAddress") {
            self = .emailAddress(address)
        } else if let number = try node.string("phoneNumber") {
            self = .phoneNumber(number)
        } else if let name = try node.string("userRecordName") {
            self = .userRecordName(name)
        } else {
            return nil
        }
    }
}

extension PersonName {
    package func writeMembers(_ json: inout JSONWriter) {
        json.member("namePrefix", namePrefix)
        json.member("givenName", givenName)
        json.member("middleName", middleName)
        json.member("familyName", familyName)
        json.member("nameSuffix", nameSuffix)
        json.member("nickname", nickname)
    }

    package init(_ node: JSONNode) throws(CloudError) {
        self.init(givenName: try node.string("givenName"), familyName: try node.string("familyName"))
        namePrefix = try node.string("namePrefix")
        middleName = try node.string("middleName")
        nameSuffix = try node.string("nameSuffix")
        nickname = try node.string("nickname")
    }
}
