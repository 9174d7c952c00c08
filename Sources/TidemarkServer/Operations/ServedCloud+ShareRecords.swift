import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkWire

/// Shares as the protocol has them: records of the type `cloudkit.share`.
extension ServedCloud {
    /// Does what an operation wants with a share.
    func changeShare(_ item: WireModify.Item, _ database: EmbeddedDatabase) async throws(CloudError) -> RecordOutcome {
        let (operation, id) = (item.operation, item.operation.record.id)
        if operation.isDeletion {
            if operation.kind == .delete,
                let share = try await database.shares(in: id.zone).first(where: { $0.id.recordName == id.recordName }),
                share.changeTag != operation.record.changeTag
            {
                throw CloudError(
                    .serverRecordChanged, "client oplock error updating record",
                    serverRecord: try await record(of: share, database))
            }
            do throws(CloudError) {
                try await database.deleteShare(id)
            } catch  where error.code == .unknownItem && operation.kind == .forceDelete {
                return .deleted(id)
            }
            return .deleted(id)
        }
        guard let wanted = item.share else { throw CloudError(.invalidArguments, "the operation is none for a share") }
        let share: CloudShare
        if operation.kind == .create {
            share = try await create(wanted, id, database)
        } else {
            share = try await change(wanted, operation, database)
        }
        return .saved(try await record(of: share, database))
    }

    private func create(
        _ wanted: WireShareRequest, _ id: CloudRecordID, _ database: EmbeddedDatabase
    ) async throws(CloudError) -> CloudShare {
        if let root = wanted.root {
            guard case .success(let record)? = try await database.lookup([root], in: id.zone, desiredKeys: []).first else {
                throw CloudError(.unknownItem, "Cannot share - no such record exists to share")
            }
            guard wanted.rootChangeTag == nil || wanted.rootChangeTag == record.changeTag else {
                throw CloudError(
                    .serverRecordChanged, "client oplock error updating record: forRecord has changed", serverRecord: record)
            }
        } else if id.recordName != CloudShare.zoneWideName {
            throw CloudError(
                .invalidArguments,
                "a share is for a record, which forRecord names; one for the whole zone has the name \(CloudShare.zoneWideName)")
        }
        var share = try await database.createShare(
            in: id.zone, coverage: .init(root: wanted.root), title: wanted.title,
            publicPermission: wanted.publicPermission ?? .none)
        do throws(CloudError) {
            let changes = try changes(of: share, to: wanted.participants ?? [], isWhole: false)
            if !changes.isEmpty { share = try await database.changeShare(share.id, changes) }
            share.shortGUID = try await database.shortGUID(of: share.id)
        } catch {
            // Nothing half done stays.
            do throws(CloudError) { try await database.deleteShare(share.id) } catch {}
            throw error
        }
        return share
    }

    private func change(
        _ wanted: WireShareRequest, _ operation: RecordOperation, _ database: EmbeddedDatabase
    ) async throws(CloudError) -> CloudShare {
        let id = operation.record.id
        let known = try await database.shares(in: id.zone)
        guard let share = known.first(where: { $0.id.recordName == id.recordName }) else {
            throw CloudError(.unknownItem, "Record not found")
        }
        if operation.kind == .update || operation.kind == .replace, operation.record.changeTag != share.changeTag {
            throw CloudError(
                .serverRecordChanged, "client oplock error updating record", serverRecord: try await record(of: share, database))
        }
        var changes: [ShareChange] = []
        if let title = wanted.title, title != share.title { changes.append(.setTitle(title)) }
        if let permission = wanted.publicPermission, permission != share.publicPermission {
            changes.append(.setPublicPermission(permission))
        }
        if let participants = wanted.participants { changes += try self.changes(of: share, to: participants, isWhole: true) }
        return changes.isEmpty ? share : try await database.changeShare(id, changes)
    }

    /// What makes the participants of a share those that are wanted.
    ///
    /// - Parameter isWhole: Whether those who are not named are to go.
    private func changes(
        of share: CloudShare, to wanted: [WireShareRequest.Participant], isWhole: Bool
    ) throws(CloudError) -> [ShareChange] {
        var changes: [ShareChange] = []
        var kept: Set<String> = []
        for participant in wanted where participant.role != .owner {
            let known = share.participants.first { known in
                if let id = participant.id { return known.id == id }
                if let user = participant.identity.userRecordName, known.identity.userRecordName == user { return true }
                guard let lookUp = participant.identity.lookUp?.normalized else { return false }
                return known.identity.lookUp?.normalized == lookUp
            }
            guard let known else {
                guard
                    let lookUp = participant.identity.lookUp ?? participant.identity.userRecordName.map(UserLookUp.userRecordName)
                else { throw CloudError(.invalidArguments, "a participant has neither lookupInfo nor userRecordName") }
                changes.append(.invite(lookUp, role: participant.role, permission: participant.permission))
                continue
            }
            guard participant.acceptanceStatus != .removed else { continue }
            kept.insert(known.id)
            if known.role != participant.role, known.role != .owner, known.role != .publicUser {
                changes.append(.setRole(participant: known.id, participant.role))
            }
            if known.permission != participant.permission, known.role != .owner {
                changes.append(.setPermission(participant: known.id, participant.permission))
            }
        }
        guard isWhole else { return changes }
        for known in share.participants
        where known.role != .owner && known.acceptanceStatus != .removed && !kept.contains(known.id) {
            changes.append(.remove(participant: known.id))
        }
        return changes
    }

    /// The record of a share, as answers have it.
    private func record(of share: CloudShare, _ database: EmbeddedDatabase) async throws(CloudError) -> CloudRecord {
        guard var record = try await database.lookup([share.id.recordName], in: share.id.zone, desiredKeys: nil).first?.get()
        else {
            throw CloudError(.unknownItem, "Record not found")
        }
        if let guid = share.shortGUID { record.share?.shortGUID = guid }
        return record
    }

    // Links

    func resolve(_ call: Call) async throws -> Reply {
        try await follow(call) { database, token throws(CloudError) in try await database.resolveLink(token) }
    }

    func accept(_ call: Call) async throws -> Reply {
        try await follow(call) { database, token throws(CloudError) in try await database.acceptLink(token) }
    }

    private struct Link {
        let token: String
        let wantsRoot: Bool
        let rootKeys: Set<String>?
    }

    private func follow(
        _ call: Call, _ open: (EmbeddedDatabase, String) async throws(CloudError) -> ShareMetadata
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
        let database = try database(call, .private)
        let dialect = dialect(call)
        var json = JSONWriter()
        json.beginObject()
        json.name("results")
        json.beginArray()
        for link in links {
            do throws(CloudError) {
                let metadata = try await open(database, link.token)
                var root: CloudRecord?
                if link.wantsRoot, let name = metadata.root {
                    let place = try self.database(call, metadata.scope)
                    // Who has not accepted sees nothing of it yet.
                    do throws(CloudError) {
                        root = try await place.lookup([name], in: metadata.share.id.zone, desiredKeys: link.rootKeys).first?.get()
                    } catch {}
                }
                write(metadata, root, link, call, &json, dialect)
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
        _ metadata: ShareMetadata, _ root: CloudRecord?, _ link: Link, _ call: Call, _ json: inout JSONWriter,
        _ dialect: WireDialect
    ) {
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
            metadata.share.write(&json, dialect)
            json.member("rootRecordName", metadata.root)
            if let root {
                json.name("rootRecord")
                root.write(&json, dialect)
            }
            let participant = metadata.participant
            json.member("participantType", (participant?.role ?? .publicUser).wireName)
            json.member("participantStatus", (participant?.acceptanceStatus ?? .pending).wireName)
            json.member("participantPermission", (participant?.permission ?? metadata.share.publicPermission).wireName)
            json.name("ownerIdentity")
            metadata.owner.write(&json)
        }
    }
}
