import Foundation
import TidemarkCloud
import TidemarkModel

/// Decides the new state of a record, and whether the caller may make it so.
extension ModifyBatch {
    /// Returns the new state of a record; `nil` for a deletion of a record that does not exist.
    mutating func decide(
        _ operation: RecordOperation, _ there: StoredCloudRecord?, schema: inout CloudSchema, _ rows: any CloudTransaction,
        _ zoneID: CloudZoneID
    ) throws(CloudError) -> StoredCloudRecord? {
        let given = operation.record
        let name = given.id.recordName
        guard (1...255).contains(name.utf8.count) else {
            throw CloudError(.invalidArguments, "a record name has 1 to 255 bytes")
        }
        if !operation.isDeletion {
            try checkSpelling(given)
        } else if !name.isComposed {
            // No record has this name, whatever exists in another spelling.
            try checkTag(operation, nil, zoneID, rows)
            return nil
        }
        let share = try there == nil ? nil : hierarchies?.share(of: name, rows)
        // A record that the caller can't see counts as missing.
        let before = access.sees(share) ? there : nil
        if before?.type == CloudShare.recordType || given.type == CloudShare.recordType || name == CloudShare.zoneWideName {
            throw CloudError(.invalidArguments, "the record of a share is changed by way of the share, and not by itself")
        }
        if let before {
            let isOwn = before.created.userRecordName == access.caller.user
            let isRoot = try hierarchies?.rooted(name, rows) != nil
            try access.demand(operation.isDeletion ? .delete : .update, share: share, isRoot: isRoot, isOwn: isOwn)
        }
        if let before, let damage = before.damage {
            return try mend(before, damage, operation, schema: &schema, rows)
        }
        try checkTag(operation, before, zoneID, rows)
        if operation.isDeletion {
            guard var record = before else { return nil }
            record.clear()
            return record
        }
        guard let before else {
            try checkNew(given, isTaken: there != nil, rows)
            try checkReleased(name)
            var record = StoredCloudRecord(
                zone: zone.id, name: name, type: given.type, fields: Data(), parent: given.parent, changed: 0,
                created: stamp, modified: stamp, isDeleted: false, dependsOn: [], assets: [], indexed: [:])
            try checkAbove(record, rows)
            try fill(&record, given.fields, given.encryptedFields, known: [:], before: [], schema: &schema, rows)
            return record
        }
        guard given.type.isEmpty || given.type == before.type else {
            throw CloudError(
                .invalidArguments, "the record '\(before.name)' is there with the type \(before.type), not \(given.type)")
        }
        let keeps = operation.kind == .update || operation.kind == .forceUpdate
        let (known, marks) = keeps || access.isLimited ? try FieldCoding.decodeMarked(before.fields) : ([:], [:])
        var fields = keeps ? known : [:]
        for field in operation.cleared { fields[field] = nil }
        fields.merge(given.fields) { $1 }
        var encrypted = given.encryptedFields
        if keeps, !marks.isEmpty {
            // A mark belongs to the field. A client that does not know of the mark changes only the value.
            for (field, mark) in marks where encrypted[field] == nil && fields[field]?.type == known[field]?.type {
                encrypted[field] = mark
            }
        }
        var record = before
        record.modified = stamp
        if given.parent != nil || !keeps { record.parent = try parent(given.parent, of: before, share, rows) }
        if record.parent != before.parent { try checkAbove(record, rows) }
        try fill(
            &record, fields, encrypted, known: known, before: access.isLimited ? known.references : [], schema: &schema, rows)
        return record
    }

    /// Returns the new state of a record whose row is damaged: a complete record from a client that knows it, or a deletion.
    ///
    /// - Throws: `recordDamaged` for an operation that builds on the damaged row.
    private mutating func mend(
        _ before: StoredCloudRecord, _ damage: StoredCloudRecord.Damage, _ operation: RecordOperation, schema: inout CloudSchema,
        _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredCloudRecord {
        let isKnown = operation.record.changeTag == engine.tag(damage.change, of: zone.place.owner)
        switch operation.kind {
        case .forceReplace, .forceDelete: break
        case .replace, .delete: guard isKnown else { throw CloudEngine.damaged(before.name) }
        case .create, .update, .forceUpdate: throw CloudEngine.damaged(before.name)
        }
        var record = StoredCloudRecord(
            zone: zone.id, name: operation.record.id.recordName,
            type: operation.record.type.isEmpty ? before.type : operation.record.type, fields: Data(),
            parent: operation.record.parent, changed: 0, created: before.created, modified: stamp, isDeleted: false,
            dependsOn: [], assets: [], indexed: [:])
        guard !operation.isDeletion else {
            record.clear()
            return record
        }
        try checkAbove(record, rows)
        try fill(
            &record, operation.record.fields, operation.record.encryptedFields, known: [:], before: [], schema: &schema, rows)
        return record
    }

    /// Checks that the caller may make a record.
    ///
    /// - Parameter isTaken: Whether the name belongs to a record that the caller does not see.
    private mutating func checkNew(_ given: CloudRecord, isTaken: Bool, _ rows: any CloudTransaction) throws(CloudError) {
        guard access.isLimited else { return try access.demand(.create) }
        guard let parent = given.parent else { return try access.demand(.create, share: nil) }
        let share = try hierarchies?.share(of: parent, rows)
        guard access.part(of: share) != nil else { throw absent(parent, of: given.id.recordName) }
        try access.demand(.create, share: share)
        // Nobody may try names out. A name that can be guessed is refused, whether it is taken or not.
        guard let uuid = UUID(uuidString: given.id.recordName), uuid.uuid.6 >> 4 == 4, !isTaken else {
            throw CloudError(
                .invalidArguments,
                "a record added to another owner's hierarchy needs a random UUID (version 4) as its name, and "
                    + "'\(given.id.recordName)' can't be used. Give the record another name")
        }
    }

    /// Returns the parent that a record gets.
    private mutating func parent(
        _ given: String?, of record: StoredCloudRecord, _ share: StoredShare.ID?, _ rows: any CloudTransaction
    ) throws(CloudError) -> String? {
        guard access.isLimited else { return given }
        if access.isRoot(record.name) {
            // A participant may neither learn nor change a root's parent. Any parent that they name is refused, even the right
            // one.
            guard given == nil else { throw CloudError(access.decide(.move, share: share)) }
            return record.parent
        }
        guard given != record.parent else { return given }
        guard let given else { throw CloudError(access.decide(.move, share: share)) }
        let new = try hierarchies?.share(of: given, rows)
        guard access.part(of: new) != nil else { throw absent(given, of: record.name) }
        guard new == share else { throw CloudError(access.decide(.move, share: share)) }
        return given
    }

    private mutating func checkAbove(_ record: StoredCloudRecord, _ rows: any CloudTransaction) throws(CloudError) {
        guard let parent = record.parent, try records.isAbove(record.name, parent, upTo: access.isRoot, rows) else { return }
        throw CloudError(.invalidArguments, "the record '\(record.name)' can't hang below itself")
    }

    private func absent(_ parent: String, of name: String) -> CloudError {
        CloudError(.referenceViolation, "the parent of '\(name)' refers to the record '\(parent)', which is not there")
    }

    private func checkTag(
        _ operation: RecordOperation, _ before: StoredCloudRecord?, _ zoneID: CloudZoneID, _ rows: any CloudTransaction
    ) throws(CloudError) {
        func changed(_ reason: String) throws(CloudError) -> CloudError {
            let server = try before.map { stored throws(CloudError) in
                try engine.record(stored, in: zoneID, keys: nil, access, rows)
            }
            return CloudError(.serverRecordChanged, reason, serverRecord: server)
        }
        switch operation.kind {
        case .create:
            if before != nil { throw try changed("record to insert already exists") }
        case .update, .replace, .delete:
            guard let tag = operation.record.changeTag else {
                throw CloudError(.invalidArguments, "missing required field 'recordChangeTag'")
            }
            // A client that has a tag has seen the record, so it was deleted since.
            guard let before else {
                try engine.checkTime(of: tag, in: zone.place.owner, isThere: false, rows)
                throw CloudEngine.noRecord
            }
            if engine.tag(before.changed, of: zone.place.owner) != tag {
                try engine.checkTime(of: tag, in: zone.place.owner, isThere: true, rows)
                throw try changed("client oplock error updating record")
            }
        case .forceUpdate, .forceReplace, .forceDelete: break
        }
    }
}

extension [String: CloudValue] {
    /// All references in the fields.
    fileprivate var references: Set<CloudReference> {
        var found: Set<CloudReference> = []
        for value in values {
            for case .reference(let reference) in value.scalars { found.insert(reference) }
        }
        return found
    }
}
