package import TidemarkCloud
package import TidemarkModel

// The messages of the operations of sharing that CloudKit Web Services lacks.

extension ShareChange {
    package func write(_ json: inout JSONWriter) {
        json.object {
            switch self {
            case .setTitle(let title):
                $0.member("change", "setTitle")
                $0.member("title", title)
            case .setPublicPermission(let permission):
                $0.member("change", "setPublicPermission")
                $0.member("permission", permission.wireName)
            case .invite(let lookUp, let role, let permission):
                $0.member("change", "invite")
                $0.name("lookupInfo")
                lookUp.write(&$0)
                $0.member("type", role.wireName)
                $0.member("permission", permission.wireName)
            case .setPermission(let participant, let permission):
                $0.member("change", "setPermission")
                $0.member("participantId", participant)
                $0.member("permission", permission.wireName)
            case .setRole(let participant, let role):
                $0.member("change", "setRole")
                $0.member("participantId", participant)
                $0.member("type", role.wireName)
            case .remove(let participant):
                $0.member("change", "remove")
                $0.member("participantId", participant)
            }
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        func participant() throws(CloudError) -> String { try node.required("participantId").asString() }
        switch try node.required("change").asString() {
        case "setTitle": self = .setTitle(try node.string("title"))
        case "setPublicPermission": self = .setPublicPermission(try .init(wire: node.required("permission")))
        case "invite":
            self = .invite(
                try UserLookUp(node.required("lookupInfo")), role: try .init(wire: node.required("type")),
                permission: try .init(wire: node.required("permission")))
        case "setPermission":
            self = .setPermission(participant: try participant(), try .init(wire: node.required("permission")))
        case "setRole": self = .setRole(participant: try participant(), try .init(wire: node.required("type")))
        case "remove": self = .remove(participant: try participant())
        default:
            throw node.refusal(
                "has a 'change' that is not one of setTitle, setPublicPermission, invite, setPermission, setRole, remove")
        }
    }
}

extension ShareLink {
    package func write(_ json: inout JSONWriter) {
        json.object {
            $0.member("id", id)
            $0.member("token", token)
            $0.member("participantId", participant)
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        self.init(
            id: try node.required("id").asString(), token: try node.required("token").asString(),
            participant: try node.string("participantId"))
    }
}

extension ShareMetadata {
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.object {
            $0.member("databaseScope", scope == .private ? "PRIVATE" : "SHARED")
            $0.name("share")
            share.write(&$0, dialect)
            $0.member("rootRecordName", root)
            $0.name("ownerIdentity")
            owner.write(&$0)
            if let participant {
                $0.name("participant")
                participant.write(&$0)
            }
        }
    }

    package init(_ node: JSONNode) throws(CloudError) {
        self.init(
            share: try CloudShare(node.required("share"), in: .default), root: try node.string("rootRecordName"),
            owner: try UserIdentity(answered: node.required("ownerIdentity")),
            participant: try node["participant"].map { node throws(CloudError) in try ShareParticipant(node) },
            scope: try node.required("databaseScope").isString("PRIVATE") ? .private : .shared)
    }
}

extension ShareAuditEntry {
    package func write(_ json: inout JSONWriter) {
        json.object {
            $0.member("microseconds", time)
            $0.member("userRecordName", userRecordName)
            $0.member("recordName", share.recordName)
            $0.member("zoneID") { share.zone.writeMembers(&$0) }
            $0.member("kind", kind.rawValue)
            $0.member("subject", subject)
            $0.member("value", value)
        }
    }

    /// Reads an entry of an answer; `nil` for a kind of event that this version does not know.
    package init?(answered node: JSONNode) throws(CloudError) {
        guard Kind(rawValue: try node.required("kind").asString()) != nil else { return nil }
        try self.init(node)
    }

    package init(_ node: JSONNode) throws(CloudError) {
        let kind = try node.required("kind")
        guard let known = Kind(rawValue: try kind.asString()) else { throw kind.refusal("is nothing that is done to a share") }
        self.init(
            time: try node.required("microseconds").asInteger(), userRecordName: try node.required("userRecordName").asString(),
            share: CloudRecordID(
                try node.required("recordName").asString(), in: try CloudZoneID(node.required("zoneID"))),
            kind: known, subject: try node.string("subject"), value: try node.string("value"))
    }
}

extension CloudShare.Coverage {
    /// Makes the coverage of a hierarchy with this root; with `nil`, of the whole zone.
    package init(root: String?) { self = root.map { .hierarchy(root: $0) } ?? .zone }

    package var root: String? { if case .hierarchy(let root) = self { root } else { nil } }
}
