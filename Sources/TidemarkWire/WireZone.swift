package import TidemarkCloud
package import TidemarkModel

extension CloudZoneID {
    /// Writes the members of the object that identifies the zone.
    package func writeMembers(_ json: inout JSONWriter) {
        json.member("zoneName", zoneName)
        if ownerName != Self.defaultOwner { json.member("ownerRecordName", ownerName) }
        json.member("zoneType", isDefault ? "DEFAULT_ZONE" : "REGULAR_CUSTOM_ZONE")
    }

    package init(_ node: JSONNode) throws(CloudError) {
        guard node.isObject else { throw node.refusal("names no zone: an object with 'zoneName' was expected") }
        let owner = try node.string("ownerRecordName") ?? Self.defaultOwner
        self.init(
            try node.required("zoneName").asString(), owner: owner == "_defaultOwner" || owner.isEmpty ? Self.defaultOwner : owner
        )
    }

    /// Reads the member `zoneID` of a request; the default zone if it is missing.
    package init(ofRequest node: JSONNode) throws(CloudError) {
        guard let zone = node["zoneID"] else {
            self = .default
            return
        }
        try self.init(zone)
    }
}
