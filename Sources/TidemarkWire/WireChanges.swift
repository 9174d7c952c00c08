package import TidemarkCloud
package import TidemarkModel

extension ZoneChanges {
    /// Writes the members of a zone in an answer, without `zoneID`.
    package func writeMembers(_ json: inout JSONWriter, types: Set<String>? = nil, _ dialect: WireDialect) {
        json.member("syncToken", token.rawValue)
        json.member("moreComing", moreComing)
        json.list("records") {
            for change in changes {
                switch change {
                case .saved(let record):
                    guard types?.contains(record.type) != false else { continue }
                    record.write(&$0, dialect)
                case .deleted(let deletion): CloudRecord.writeDeleted(deletion.id, type: deletion.type, &$0, dialect)
                }
            }
            for failure in failed { failure.write(&$0, dialect) }
        }
        if let incarnation, dialect.isExtended { json.member("tidemark") { $0.member("incarnation", incarnation) } }
    }

    package init(answered node: JSONNode, in zone: CloudZoneID) throws(CloudError) {
        let zone = try node["zoneID"].map { node throws(CloudError) in try CloudZoneID(node) } ?? zone
        self.init(
            changes: [], token: CloudToken(rawValue: try node.required("syncToken").asString()),
            moreComing: try node.bool("moreComing") ?? false, incarnation: try node["tidemark"]?.string("incarnation"))
        let records = try node.required("records")
        guard records.isArray else { throw records.refusal("is not an array") }
        changes.reserveCapacity(records.elementCount)
        for node in records.elements {
            if try node.bool("deleted") == true {
                let id = CloudRecordID(try node.required("recordName").asString(), in: zone)
                changes.append(.deleted(.init(id: id, type: try node.string("recordType") ?? "")))
            } else if let failure = try RecordFailure(answered: node, in: zone) {
                failed.append(failure)
            } else {
                changes.append(.saved(try CloudRecord(answered: node, in: zone)))
            }
        }
    }
}

extension DatabaseChanges {
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.object {
            $0.list("zones") { json in
                for zone in changed { json.object { $0.member("zoneID") { zone.writeMembers(&$0) } } }
                for (zones, isPurged) in [(deleted, false), (purged, true)] {
                    for zone in zones {
                        json.object {
                            $0.member("zoneID") { zone.writeMembers(&$0) }
                            $0.member("deleted", true)
                            if isPurged, dialect.isExtended { $0.member("tidemark") { $0.member("purged", true) } }
                        }
                    }
                }
            }
            $0.member("syncToken", token.rawValue)
            $0.member("moreComing", moreComing)
            if let incarnation, dialect.isExtended { $0.member("tidemark") { $0.member("incarnation", incarnation) } }
        }
    }

    package init(answered node: JSONNode) throws(CloudError) {
        self.init(
            changed: [], deleted: [], purged: [], token: CloudToken(rawValue: try node.required("syncToken").asString()),
            moreComing: try node.bool("moreComing") ?? false, incarnation: try node["tidemark"]?.string("incarnation"))
        for node in try node.required("zones").asArray() {
            let zone = try CloudZoneID(node.required("zoneID"))
            if try node.bool("deleted") != true {
                changed.append(zone)
            } else if try node["tidemark"]?.bool("purged") == true {
                purged.append(zone)
            } else {
                deleted.append(zone)
            }
        }
    }
}

extension RecordFailure {
    /// Writes a record in an answer that is an error.
    package func write(_ json: inout JSONWriter, _ dialect: WireDialect) {
        json.object {
            $0.member("recordName", id.recordName)
            $0.member("recordChangeTag", changeTag)
            error.writeMembers(&$0, dialect)
        }
    }

    /// Reads a record of an answer; `nil` if it is not an error.
    package init?(answered node: JSONNode, in zone: CloudZoneID) throws(CloudError) {
        guard let error = try CloudError(answered: node, in: zone) else { return nil }
        self.init(
            id: CloudRecordID(try node.required("recordName").asString(), in: zone),
            changeTag: try node.string("recordChangeTag"),
            error: error)
    }
}
