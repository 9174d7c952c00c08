import Foundation
import TidemarkCloud
import TidemarkModel

/// One request that changes records, on its way.
struct ModifyBatch {
    let engine: CloudEngine
    let request: ModifyRecordsRequest
    let access: ShareAccess
    private let found: FoundOwners
    private var outcomes: [RecordOutcome?]
    /// The types of the fields that records of this request have had, by record type: the schema has them.
    private var admitted: [String: [String: FieldType]] = [:]
    /// Whether the operation adds to the schema.
    private var grows = false
    /// What the container and the caller have added to the schema.
    private var schemaUse: (all: CloudSchema.Use, own: CloudSchema.Use)?
    var records: RecordCache
    /// Of a zone in which hierarchies are shared.
    var hierarchies: ShareHierarchyIndex?
    var changed: [StoredCloudRecord] = []
    /// Names of records that were there before.
    var replaced: Set<String> = []
    /// What accounts have stored more, by account.
    var bytes: [String: Int64] = [:]
    /// Records that this request may still remove beside those that it names.
    var removable = CloudEngine.removedAtOnce
    /// What is left to be removed of what was deleted before, and what this request leaves.
    var (pending, left): ([StoredRemoval], [StoredRemoval]) = ([], [])
    /// The number of the last change.
    var change: Int64
    let stamp: CloudRecord.Stamp
    /// Shares that end with their root.
    var ended: [StoredShare] = []
    /// Assets that no record names any more.
    private(set) var released = ReleasedAssets()

    var zone: StoredZone { access.zone }

    init(
        engine: CloudEngine, request: ModifyRecordsRequest, access: ShareAccess, finding found: FoundOwners,
        _ rows: any CloudTransaction
    ) throws(CloudError) {
        self.engine = engine
        self.found = found
        self.request = request
        self.access = access
        outcomes = Array(repeating: nil, count: request.operations.count)
        let composed = request.composedNames
        records = try RecordCache(composed, in: access.zone.id, rows)
        if access.zone.sharing == .hierarchies {
            hierarchies = ShareHierarchyIndex(zone: access.zone.id)
            try hierarchies?.load(composed + request.operations.compactMap(\.record.parent).filter(\.isComposed), rows)
        }
        pending = try rows.removals(in: access.zone.id)
        change = try engine.changeBefore(requestOf: access.zone.place.owner, rows)
        stamp = CloudRecord.Stamp(time: engine.now(), userRecordName: access.caller.user)
        changed.reserveCapacity(request.operations.count)
    }

    /// Whether something was written.
    private(set) var hasChanged = false

    mutating func run(_ rows: any CloudTransaction) throws(CloudError) -> [RecordOutcome] {
        var schema = try rows.schema()
        let first = change
        var hasGrown = false
        let zoneID = engine.id(of: zone, access.caller)
        var failures: [Int: CloudError] = [:]
        var answered = 0
        for (index, operation) in request.operations.enumerated() {
            let name = operation.record.id.recordName
            do {
                let before = try present(name, schema: schema, rows)
                var grown = schema
                grows = false
                guard let record = try decide(operation, before, schema: &grown, rows, zoneID) else {
                    outcomes[index] = .deleted(CloudRecordID(name, in: zoneID))
                    continue
                }
                if let before, record.isDeleted {
                    try delete(before, schema: schema, rows)
                    outcomes[index] = .deleted(CloudRecordID(name, in: zoneID))
                } else {
                    if grows { try checkGrowth(of: record.type, from: schema, to: grown) }
                    let saved = try save(record, before, rows)
                    if grows { (schema, hasGrown) = (grown, true) }
                    outcomes[index] = .saved(try engine.record(saved, in: zoneID, keys: request.desiredKeys, access, rows))
                    if request.desiredKeys == nil { answered += saved.fields.count }
                }
            } catch {
                // What the storage can't do is nothing that the operation is to blame for.
                guard error.code != .internalError, error.code != .changeTokenExpired else { throw error }
                failures[index] = error
                if error.serverRecord != nil { answered += try records.record(name, rows)?.fields.count ?? 0 }
                // The schema has not taken in what it brought.
                admitted = [:]
            }
            guard answered <= engine.limits.bytesPerRequest * 4 || request.operations.count == 1 else {
                throw CloudError(
                    .limitExceeded,
                    "the answer would have more than \(engine.limits.bytesPerRequest * 4) bytes. Halve the request, or ask for fewer fields"
                )
            }
        }
        if request.isAtomic, !failures.isEmpty {
            let innocent = CloudError(.batchRequestFailed, "another operation of the atomic request has failed")
            return request.operations.indices.map { .failed(failures[$0] ?? innocent) }
        }
        for (index, error) in failures { outcomes[index] = .failed(error) }
        // What others have paid for and goes is theirs: what comes, the caller pays, or the owner of what is shared.
        let payer = engine.payer(zone, access.caller)
        if let more = bytes[payer], more > 0 {
            let (used, reserved) = (try rows.used(by: payer), try rows.reserved(by: payer).bytes)
            guard used + reserved + more <= access.caller.quota else {
                throw access.caller.noRoom("what is saved", needing: more, used: used, reserved: reserved)
            }
        }
        guard change > first else { return outcomes.map { $0! } }
        if hasGrown { try rows.save(schema) }
        try write(rows)
        return outcomes.map { $0! }
    }

    mutating func write(_ rows: any CloudTransaction) throws(CloudError) {
        hasChanged = true
        for user in bytes.keys.sorted() { try found.demand(user) }
        let named = try rows.assetsNamed(by: replaced.sorted(), in: zone.id)
        try rows.save(latest(changed))
        released = try ReleasedAssets(named, of: zone.place.owner, finding: found, rows)
        try hierarchies?.save(rows)
        try engine.setLastChange(change, of: zone.place.owner, rows)
        for (user, bytes) in bytes { try rows.addUsed(bytes, by: user) }
        for removal in left { try rows.add(removal) }
        var touched = zone
        touched.changed = change
        for share in ended { try engine.end(share, in: &touched, access.caller, rows) }
        try engine.saveChanged(touched, rows)
    }

    /// The last state of each record, in the order of their changes.
    private func latest(_ records: [StoredCloudRecord]) -> [StoredCloudRecord] {
        var last: [String: Int64] = [:]
        for record in records { last[record.name] = record.changed }
        return records.filter { last[$0.name] == $0.changed }
    }

    // Changes of one record

    /// Counts a record, in the place of what is there of its name, a tombstone too.
    mutating func count(_ record: StoredCloudRecord, _ rows: any CloudTransaction) throws(CloudError) {
        if let before = try records.record(record.name, rows) {
            bytes[engine.payer(of: before, in: zone), default: 0] -= before.size
        }
        bytes[engine.payer(of: record, in: zone), default: 0] += record.size
    }

    mutating func save(
        _ record: StoredCloudRecord, _ before: StoredCloudRecord?, _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredCloudRecord {
        var (record, next) = (record, change + 1)
        record.changed = next
        try hierarchies?.place(record, was: before, change: &next, &records, rows)
        change = next
        try count(record, rows)
        if before != nil { replaced.insert(record.name) }
        records.put(record)
        changed.append(record)
        return record
    }

    /// Decides what a record is to be; `nil` when what is to be deleted is not there.
    private mutating func decide(
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
            // Nothing is called so, whatever is there in another spelling.
            try checkTag(operation, nil, zoneID, rows)
            return nil
        }
        let share = try there == nil ? nil : hierarchies?.share(of: name, rows)
        // What the caller can't see is not there.
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
            // A mark belongs to the field: a client that does not know of it changes the value alone.
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

    /// What a record is to be whose row is damaged: what comes whole from a client that knows it, or nothing.
    ///
    /// - Throws: `recordDamaged` for what would be made of the damaged one.
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

    /// Whether the caller may make a record.
    ///
    /// - Parameter isTaken: Whether one of its name is there, which they don't see.
    private mutating func checkNew(_ given: CloudRecord, isTaken: Bool, _ rows: any CloudTransaction) throws(CloudError) {
        guard access.isLimited else { return try access.demand(.create) }
        guard let parent = given.parent else { return try access.demand(.create, share: nil) }
        let share = try hierarchies?.share(of: parent, rows)
        guard access.part(of: share) != nil else { throw absent(parent, of: given.id.recordName) }
        try access.demand(.create, share: share)
        // Nobody can try names out: one that can be guessed is refused, whether it is taken or not.
        guard let uuid = UUID(uuidString: given.id.recordName), uuid.uuid.6 >> 4 == 4, !isTaken else {
            throw CloudError(
                .invalidArguments,
                "a record added to another owner's hierarchy needs a random UUID (version 4) as its name, and "
                    + "'\(given.id.recordName)' can't be used. Give the record another name")
        }
    }

    /// What a record is to hang below.
    private mutating func parent(
        _ given: String?, of record: StoredCloudRecord, _ share: StoredShare.ID?, _ rows: any CloudTransaction
    ) throws(CloudError) -> String? {
        guard access.isLimited else { return given }
        if access.isRoot(record.name) {
            // What a root hangs below is not theirs to know or to change: each that they name is refused, the right one too.
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

    /// That names are spelled in one way. Two that are compared as equal here and as different there would be one record to the rules and two
    /// to the storage.
    private func checkSpelling(_ given: CloudRecord) throws(CloudError) {
        func check(_ name: String) throws(CloudError) {
            guard name.utf8.count <= 255 else {
                throw CloudError(.invalidArguments, "the name '\(name.prefix(40))…' is longer than 255 bytes")
            }
            guard !name.utf8.contains(0) else {
                throw CloudError(.invalidArguments, "the name '\(name.prefix(40))' has a NUL character, and no name can")
            }
            guard !name.isComposed else { return }
            throw CloudError(
                .invalidArguments,
                "the name '\(name)' is not composed: a cloud takes names in the normal form C of Unicode only. Rename the record: tidemark records rename"
            )
        }
        try check(given.id.recordName)
        if let parent = given.parent { try check(parent) }
        for (_, value) in given.fields where value.type.scalar == .reference {
            for case .reference(let reference) in value.scalars where reference.action != .none {
                try check(reference.recordName)
            }
        }
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
            // A client that knows a tag has known the record: it was deleted since.
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

    // What a record has

    /// Gives a record its fields, checked.
    ///
    /// - Parameters:
    ///   - encrypted: The marks of fields that clients encrypt.
    ///   - known: Fields that it has had, as far as they were looked at.
    ///   - before: References that it has had: whoever keeps them learns nothing of what they name.
    private mutating func fill(
        _ record: inout StoredCloudRecord, _ fields: [String: CloudValue], _ encrypted: [String: CloudRecord.FieldEncryption],
        known: [String: CloudValue], before: Set<CloudReference>, schema: inout CloudSchema,
        _ rows: any CloudTransaction
    ) throws(CloudError) {
        try admit(fields, before: known, of: record.type, into: &schema)
        record.fields = FieldCoding.encode(fields, encrypted: encrypted)
        guard record.fields.count <= engine.limits.bytesPerRecord else {
            throw CloudError(
                .limitExceeded,
                "the record '\(record.name)' has \(record.fields.count) bytes, and \(engine.limits.bytesPerRecord) is the most. "
                    + "Put what is large into an asset")
        }
        record.isDeleted = false
        record.link(to: fields, schema)
        for (name, value) in fields where value.type.scalar == .reference {
            for case .reference(let reference) in value.scalars where reference.action != .none {
                // Who is limited would learn from what goes with it whether a record that they don't see was there.
                guard reference.action == .validate || access.isLimited, !before.contains(reference) else { continue }
                try checkPresent(reference.recordName, "'\(name)' of '\(record.name)'", rows)
            }
        }
        if let parent = record.parent, !access.isRoot(record.name) {
            try checkPresent(parent, "the parent of '\(record.name)'", rows)
            guard try records.record(parent, rows)?.type != CloudShare.recordType else {
                throw CloudError(.invalidArguments, "nothing hangs below the record of a share")
            }
        }
        try checkAssets(of: record, fields, rows)
    }

    /// That what a record names was uploaded, by the caller unless they own it or may read it.
    private func checkAssets(
        of record: StoredCloudRecord, _ fields: [String: CloudValue], _ rows: any CloudTransaction
    ) throws(CloudError) {
        guard !record.assets.isEmpty else { return }
        let there = try engine.assets(record.assets, for: access, rows)
        if let missing = record.assets.first(where: { there[$0] == nil }) {
            throw CloudError(.assetNotAvailable, "the asset \(missing.prefix(64)) of '\(record.name)' was not uploaded")
        }
        for case .asset(let asset) in fields.values.lazy.flatMap(\.scalars) where there[asset.digest] != asset.size {
            throw CloudError(
                .assetNotAvailable, "the asset \(asset.digest) of '\(record.name)' does not have \(asset.size) bytes")
        }
    }

    /// Takes into the schema what a record has, or checks it; what records of this request have had before is known.
    private mutating func admit(
        _ fields: [String: CloudValue], before: [String: CloudValue], of type: String, into schema: inout CloudSchema
    ) throws(CloudError) {
        if let known = admitted[type], fields.allSatisfy({ known[$0] == $1.type && $1.isWhollyFinite && $1.isOnEarth }) { return }
        // Values that were taken once stay, also when the field has another type since.
        let new = before.isEmpty ? fields : fields.filter { before[$0] != $1 }
        if try schema.admit(
            type, fields: new, limits: engine.limits, isFixed: engine.environment == .production, by: access.caller.user)
        {
            grows = true
        }
        for (name, value) in new {
            // A list without elements may be of any type.
            if case .list(let elements, _) = value, elements.isEmpty { continue }
            admitted[type, default: [:]][name] = value.type
        }
    }

    /// That an account does not add more to the schema than it may.
    private mutating func checkGrowth(of type: String, from old: CloudSchema, to new: CloudSchema) throws(CloudError) {
        let user = access.caller.user
        var use = schemaUse ?? (old.use(by: nil), old.use(by: user))
        use.all += new.use(of: type, by: nil) - old.use(of: type, by: nil)
        use.own += new.use(of: type, by: user) - old.use(of: type, by: user)
        try engine.schemaLimits.check(use.all, use.own)
        schemaUse = use
    }

    private mutating func checkPresent(_ name: String, _ what: String, _ rows: any CloudTransaction) throws(CloudError) {
        let found = try records.record(name, rows)
        guard let found, !found.isDeleted, access.sees(try hierarchies?.share(of: name, rows)) else {
            throw CloudError(.referenceViolation, "\(what) refers to the record '\(name)', which is not there")
        }
    }
}

extension StoredCloudRecord {
    /// Leaves a tombstone.
    mutating func clear() {
        isDeleted = true
        damage = nil
        fields = Data()
        parent = nil
        (dependsOn, assets, indexed) = ([], [], [:])
    }

    /// Takes what it depends on, names and is found under from its fields.
    mutating func link(to fields: [String: CloudValue], _ schema: CloudSchema) {
        (dependsOn, assets) = ([], [])
        for (_, value) in fields where value.type.scalar == .asset || value.type.scalar == .reference {
            for scalar in value.scalars {
                switch scalar {
                case .asset(let asset): assets.insert(asset.digest)
                case .reference(let reference):
                    if reference.action == .deleteSelf { dependsOn.insert(reference.recordName) }
                case .string, .int64, .double, .timestamp, .bytes, .location, .list: break
                }
            }
        }
        indexed = schema.indexed(fields, type: type)
    }
}

extension [String: CloudValue] {
    /// All references that fields have.
    fileprivate var references: Set<CloudReference> {
        var found: Set<CloudReference> = []
        for value in values {
            for case .reference(let reference) in value.scalars { found.insert(reference) }
        }
        return found
    }
}
