import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkWire

/// Shares in the protocol: records of the type `cloudkit.share`.
extension ServedCloud {
    /// Applies an operation to a share.
    func changeShare(_ item: WireModify.Item, _ database: EmbeddedDatabase) async throws(CloudError) -> RecordOutcome {
        let (operation, id) = (item.operation, item.operation.record.id)
        if operation.isDeletion {
            do throws(CloudError) {
                if operation.kind == .delete, let tag = operation.record.changeTag {
                    try await database.deleteShare(id, ifTag: tag)
                } else {
                    try await database.deleteShare(id)
                }
            } catch {
                guard error.code == .unknownItem, operation.kind == .forceDelete else { throw error }
            }
            return .deleted(id)
        }
        guard let wanted = item.share else { throw CloudError(.invalidArguments, "the operation does not apply to a share") }
        if operation.kind == .create {
            guard wanted.root != nil || id.recordName == CloudShare.zoneWideName else {
                throw CloudError(
                    .invalidArguments,
                    "a share is for a record, which forRecord names; one for the whole zone has the name \(CloudShare.zoneWideName)"
                )
            }
            return .saved(
                try await database.createShare(
                    wanted.desired, named: item.isNamed ? id.recordName : nil, of: wanted.root, ifTag: wanted.rootChangeTag,
                    in: id.zone))
        }
        let hasTag = operation.kind == .update || operation.kind == .replace
        return .saved(
            try await database.changeShare(id, to: wanted.desired, ifTag: hasTag ? operation.record.changeTag ?? "" : nil))
    }

    // Links

    func resolve(_ call: Call) async throws -> Reply {
        try await follow(call) { _, _ throws(CloudError) in }
    }

    func accept(_ call: Call) async throws -> Reply {
        try await follow(call) { database, token throws(CloudError) in
            let metadata: ShareMetadata
            do throws(CloudError) {
                metadata = try await database.acceptLink(token)
            } catch {
                // The caller gets the error of the call, even if the log can't be written. A call that succeeds fails if it can't
                // be logged.
                try? await auditAcceptance(of: nil, error, call)
                throw error
            }
            try await auditing { () throws(CredentialError) in try await auditAcceptance(of: metadata, nil, call) }
        }
    }

    private struct Link {
        let token: String
        let wantsRoot: Bool
        let rootKeys: Set<String>?
    }

    private func follow(
        _ call: Call, _ open: (EmbeddedDatabase, String) async throws(CloudError) -> Void
    ) async throws(CloudError) -> Reply {
        let links = try call.read { node throws(CloudError) in
            var links: [Link] = []
            for node in try node.required("shortGUIDs").asArray(most: Self.limits.operationsPerRequest) {
                links.append(
                    Link(
                        token: try node.required("value").asString(), wantsRoot: try node.bool("shouldFetchRootRecord") ?? false,
                        rootKeys: try node.keys("rootRecordDesiredKeys")))
            }
            return links
        }
        let database = try await database(call, .private)
        let dialect = dialect(call)
        var json = JSONWriter()
        json.beginObject()
        json.name("results")
        json.beginArray()
        for link in links {
            do throws(CloudError) {
                try await open(database, link.token)
                let linked = try await database.resolveLinkedRecords(
                    link.token, fetchesRoot: link.wantsRoot, rootKeys: link.rootKeys)
                write(linked, link, call, &json, dialect)
            } catch {
                json.object {
                    $0.member("shortGUID") { $0.member("value", link.token) }
                    error.writeMembers(&$0, dialect)
                }
            }
        }
        json.endArray()
        json.endObject()
        return .json(json.bytes)
    }

    private func write(
        _ linked: LinkedRecords, _ link: Link, _ call: Call, _ json: inout JSONWriter, _ dialect: WireDialect
    ) {
        let metadata = linked.metadata
        json.object { json in
            json.member("shortGUID") {
                $0.member("value", link.token)
                $0.member("shouldFetchRootRecord", link.wantsRoot)
            }
            json.member("containerIdentifier", call.container)
            json.member("environment", call.environment.rawValue)
            json.member("databaseScope", metadata.scope == .private ? "PRIVATE" : "SHARED")
            json.member("zoneID") { metadata.share.id.zone.writeMembers(&$0) }
            json.name("share")
            linked.share.write(&json, dialect)
            json.member("rootRecordName", metadata.root)
            if let root = linked.root {
                json.name("rootRecord")
                root.write(&json, dialect)
            }
            let participant = metadata.participant
            json.member("participantType", (participant?.role ?? .publicUser).wireName)
            json.member("participantStatus", (participant?.acceptanceStatus ?? .pending).wireName)
            json.member("participantPermission", (participant?.permission ?? metadata.share.publicPermission).wireName)
            json.name("ownerIdentity")
            metadata.owner.write(&json)
            // The invited participant that the caller can become. It has no other person's address.
            json.list("potentialMatchList") {
                guard let participant, participant.acceptanceStatus == .pending else { return }
                $0.object {
                    $0.member("participantId", participant.id)
                    if let lookUp = participant.identity.lookUp {
                        $0.name("contactInformation")
                        lookUp.write(&$0)
                    }
                }
            }
        }
    }
}

extension WireShareRequest {
    fileprivate var desired: DesiredShare {
        DesiredShare(
            title: title, publicPermission: publicPermission,
            participants: participants?.map {
                .init(
                    id: $0.id, identity: $0.identity, role: $0.role, permission: $0.permission,
                    isRemoved: $0.acceptanceStatus == .removed)
            })
    }
}
