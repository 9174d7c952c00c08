import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// Changes records; see `CloudDatabase`.
    func modify(
        _ request: ModifyRecordsRequest, _ shelf: AssetShelf, _ caller: Caller
    ) async throws(CloudError) -> [RecordOutcome] {
        try check(request)
        let (outcomes, released) = try await storage.write { rows throws(CloudError) in
            if let token = request.clientToken, let answer = try rows.answer(to: token, of: caller.user) {
                return (try repeated(answer, request, caller, rows), ReleasedAssets())
            }
            let zone = try zoneToWrite(request.zone, caller, rows)
            var batch = ModifyBatch(engine: self, request: request, zone: zone, caller: caller)
            let outcomes = try batch.run(rows)
            if let token = request.clientToken {
                let time = now()
                try rows.forgetAnswers(before: time - Self.answerAge)
                try rows.keep(KeptAnswer(to: request, outcomes).data, to: token, of: caller.user, at: time)
            }
            return (outcomes, batch.released)
        }
        await remove(released, shelf)
        return outcomes
    }

    /// What can be told without looking anything up.
    private func check(_ request: ModifyRecordsRequest) throws(CloudError) {
        guard request.operations.count <= limits.operationsPerRequest else {
            throw CloudError(
                .limitExceeded,
                "a request has \(limits.operationsPerRequest) operations at the most, not \(request.operations.count). Halve it")
        }
        guard !request.isAtomic || !request.zone.isDefault else {
            throw CloudError(.invalidArguments, "atomic operations not supported in default zone")
        }
        var names: Set<String> = []
        var bytes = 0
        for operation in request.operations {
            let name = operation.record.id.recordName
            guard names.insert(name).inserted else {
                throw CloudError(.invalidArguments, "the request has two operations for the record '\(name)'")
            }
            bytes += name.utf8.count + operation.record.fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.byteCount }
        }
        guard bytes <= limits.bytesPerRequest || request.operations.count == 1 else {
            throw CloudError(
                .limitExceeded, "a request has \(limits.bytesPerRequest) bytes at the most, not \(bytes). Halve it")
        }
        if let token = request.clientToken, !(1...255).contains(token.utf8.count) {
            throw CloudError(.invalidArguments, "a client token has 1 to 255 bytes")
        }
    }

    /// The answer to a request that was made before: what was said then, with the records as they are now.
    private func repeated(
        _ answer: Data, _ request: ModifyRecordsRequest, _ caller: Caller, _ rows: any CloudTransaction
    ) throws(CloudError) -> [RecordOutcome] {
        let kept = try KeptAnswer(answer)
        guard kept.items.count == request.operations.count,
            zip(kept.items, request.operations).allSatisfy({ $0.name == $1.record.id.recordName })
        else { throw CloudError(.invalidArguments, "the client token belongs to another request") }
        guard let zone = try existing(request.zone, caller, rows) else { throw Self.notFound(request.zone) }
        let zoneID = id(of: zone, caller)
        let found = try rows.records(kept.items.map(\.name), in: zone.id)
        var outcomes: [RecordOutcome] = []
        for (name, item) in kept.items {
            switch item {
            case .failed(let code, let reason):
                var error = CloudError(.init(rawValue: code), reason)
                if error.code == .serverRecordChanged, let stored = found[name], !stored.isDeleted {
                    // Whole, as the first time: it is to be merged with.
                    error.serverRecord = try record(stored, in: zoneID, keys: nil)
                }
                outcomes.append(.failed(error))
            case .deleted: outcomes.append(.deleted(CloudRecordID(name, in: zoneID)))
            case .saved(let tag):
                guard let stored = found[name] else {
                    outcomes.append(.failed(Self.noRecord))
                    continue
                }
                // Where others have changed it since, the tag is the one of then: so that the next change meets theirs. What they have
                // deleted has no fields any more.
                var saved =
                    stored.isDeleted
                    ? CloudRecord(CloudRecordID(name, in: zoneID), type: stored.type)
                    : try record(stored, in: zoneID, keys: request.desiredKeys)
                saved.changeTag = tag
                outcomes.append(.saved(saved))
            }
        }
        return outcomes
    }
}

/// One request on its way.
private struct ModifyBatch {
    let engine: CloudEngine
    let request: ModifyRecordsRequest
    let zone: StoredZone
    let caller: CloudEngine.Caller

    private var outcomes: [RecordOutcome?]
    /// The types of the fields that records of this request have had, by record type: the schema has them.
    private var admitted: [String: [String: FieldType]] = [:]
    private var changed: [StoredRecord] = []
    /// Names of records that were there before.
    private var replaced: Set<String> = []
    private var bytes: Int64 = 0
    /// Assets that no record names any more.
    private(set) var released = ReleasedAssets()

    init(engine: CloudEngine, request: ModifyRecordsRequest, zone: StoredZone, caller: CloudEngine.Caller) {
        self.engine = engine
        self.request = request
        self.zone = zone
        self.caller = caller
        outcomes = Array(repeating: nil, count: request.operations.count)
    }

    mutating func run(_ rows: any CloudTransaction) throws(CloudError) -> [RecordOutcome] {
        var schema = try rows.schema()
        let names = request.operations.map(\.record.id.recordName)
        var known = try rows.records(names, in: zone.id)
        var change = try rows.lastChange()
        let first = change
        let time = engine.now()
        let stamp = CloudRecord.Stamp(time: time, userRecordName: caller.user)
        let zoneID = engine.id(of: zone, caller)
        let schemaBefore = schema
        var failures: [Int: CloudError] = [:]
        changed.reserveCapacity(names.count)
        for (index, operation) in request.operations.enumerated() {
            do {
                let before = known[operation.record.id.recordName].flatMap { $0.isDeleted ? nil : $0 }
                var grown = schema
                guard var record = try settle(operation, before, stamp, schema: &grown, known: known, rows, zoneID) else {
                    outcomes[index] = .deleted(CloudRecordID(operation.record.id.recordName, in: zoneID))
                    continue
                }
                schema = grown
                change += 1
                record.changed = change
                bytes += Int64(record.fields.count) - Int64(before?.fields.count ?? 0)
                if before != nil { replaced.insert(record.name) }
                known[record.name] = record
                changed.append(record)
                if record.isDeleted {
                    outcomes[index] = .deleted(CloudRecordID(operation.record.id.recordName, in: zoneID))
                    for dependent in try dependents(of: record.name, known, rows) {
                        change += 1
                        var gone = dependent
                        gone.changed = change
                        gone.modified = stamp
                        bytes -= Int64(dependent.fields.count)
                        replaced.insert(dependent.name)
                        gone.clear()
                        known[gone.name] = gone
                        changed.append(gone)
                    }
                } else {
                    outcomes[index] = .saved(try engine.record(record, in: zoneID, keys: request.desiredKeys))
                }
            } catch {
                failures[index] = error
                // The schema has not taken in what it brought.
                admitted = [:]
            }
        }
        if request.isAtomic, !failures.isEmpty {
            let innocent = CloudError(.batchRequestFailed, "another operation of the atomic request has failed")
            return request.operations.indices.map { .failed(failures[$0] ?? innocent) }
        }
        for (index, error) in failures { outcomes[index] = .failed(error) }
        if bytes > 0, try rows.used(by: zone.place.owner) + bytes > caller.quota {
            throw CloudError(.quotaExceeded, "the account's storage is full")
        }
        guard change > first else { return outcomes.map { $0! } }
        if schema != schemaBefore { try rows.save(schema) }
        let named = try rows.assetsNamed(by: replaced.sorted(), in: zone.id)
        try rows.save(latest(changed))
        released = try ReleasedAssets(named, of: zone.place.owner, rows)
        try rows.setLastChange(change)
        var touched = zone
        touched.changed = change
        _ = try rows.save(touched)
        try rows.addUsed(bytes, by: zone.place.owner)
        return outcomes.map { $0! }
    }

    /// The last state of each record, in the order of their changes.
    private func latest(_ records: [StoredRecord]) -> [StoredRecord] {
        var last: [String: Int64] = [:]
        for record in records { last[record.name] = record.changed }
        return records.filter { last[$0.name] == $0.changed }
    }

    /// What a record is to be; `nil` when what is to be deleted is not there.
    private mutating func settle(
        _ operation: RecordOperation, _ before: StoredRecord?, _ stamp: CloudRecord.Stamp, schema: inout CloudSchema,
        known: [String: StoredRecord], _ rows: any CloudTransaction, _ zoneID: CloudZoneID
    ) throws(CloudError) -> StoredRecord? {
        let given = operation.record
        guard (1...255).contains(given.id.recordName.utf8.count) else {
            throw CloudError(.invalidArguments, "a record name has 1 to 255 bytes")
        }
        try checkTag(operation, before, zoneID)
        if operation.isDeletion {
            guard var record = before else { return nil }
            record.modified = stamp
            record.clear()
            return record
        }
        guard let before else {
            return try made(given, stamp, schema: &schema, known: known, rows)
        }
        guard given.type.isEmpty || given.type == before.type else {
            throw CloudError(
                .invalidArguments, "the record '\(before.name)' is there with the type \(before.type), not \(given.type)")
        }
        var fields: [String: CloudValue] = [:]
        if operation.kind == .update || operation.kind == .forceUpdate {
            fields = try FieldCoding.decode(before.fields)
            for field in operation.cleared { fields[field] = nil }
        }
        fields.merge(given.fields) { $1 }
        var record = before
        record.modified = stamp
        if given.parent != nil || operation.kind == .replace || operation.kind == .forceReplace { record.parent = given.parent }
        try fill(&record, fields, schema: &schema, known: known, rows)
        return record
    }

    private mutating func made(
        _ given: CloudRecord, _ stamp: CloudRecord.Stamp, schema: inout CloudSchema,
        known: [String: StoredRecord], _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredRecord {
        var record = StoredRecord(
            zone: zone.id, name: given.id.recordName, type: given.type, fields: Data(), parent: given.parent, changed: 0,
            created: stamp, modified: stamp, isDeleted: false, dependsOn: [], assets: [], indexed: [:])
        try fill(&record, given.fields, schema: &schema, known: known, rows)
        return record
    }

    private func checkTag(
        _ operation: RecordOperation, _ before: StoredRecord?, _ zoneID: CloudZoneID
    ) throws(CloudError) {
        func changed(_ reason: String) throws(CloudError) -> CloudError {
            let server = try before.map { stored throws(CloudError) in try engine.record(stored, in: zoneID, keys: nil) }
            return CloudError(.serverRecordChanged, reason, serverRecord: server)
        }
        switch operation.kind {
        case .create:
            if before != nil { throw try changed("record to insert already exists") }
        case .update, .replace, .delete:
            guard let tag = operation.record.changeTag else {
                throw CloudError(.invalidArguments, "missing required field 'recordChangeTag'")
            }
            guard let before else {
                if operation.kind == .delete { throw CloudEngine.noRecord }
                // A client that knows a tag has known the record: it was deleted since.
                throw CloudError(.unknownItem, "Record not found")
            }
            if CloudEngine.tag(before.changed) != tag { throw try changed("client oplock error updating record") }
        case .forceUpdate, .forceReplace, .forceDelete: break
        }
    }

    /// Gives a record its fields, checked.
    private mutating func fill(
        _ record: inout StoredRecord, _ fields: [String: CloudValue], schema: inout CloudSchema, known: [String: StoredRecord],
        _ rows: any CloudTransaction
    ) throws(CloudError) {
        try admit(fields, of: record.type, into: &schema)
        record.fields = FieldCoding.encode(fields)
        guard record.fields.count <= engine.limits.bytesPerRecord else {
            throw CloudError(
                .limitExceeded,
                "the record '\(record.name)' has \(record.fields.count) bytes, and \(engine.limits.bytesPerRecord) is the most. "
                    + "Put what is large into an asset")
        }
        record.isDeleted = false
        (record.dependsOn, record.assets) = ([], [])
        for (name, value) in fields where value.type.scalar == .asset || value.type.scalar == .reference {
            for scalar in value.scalars {
                switch scalar {
                case .asset(let asset): record.assets.insert(asset.digest)
                case .reference(let reference):
                    if reference.action == .deleteSelf { record.dependsOn.insert(reference.recordName) }
                    if reference.action == .validate {
                        try checkPresent(reference.recordName, "'\(name)' of '\(record.name)'", known, rows)
                    }
                default: break
                }
            }
        }
        if let parent = record.parent { try checkPresent(parent, "the parent of '\(record.name)'", known, rows) }
        if !record.assets.isEmpty {
            let there = try rows.assets(record.assets, owner: zone.place.owner)
            if let missing = record.assets.first(where: { there[$0] == nil }) {
                throw CloudError(.assetNotAvailable, "the asset \(missing) of '\(record.name)' was not uploaded")
            }
        }
        record.indexed = schema.indexed(fields, type: record.type)
    }

    /// Takes into the schema what a record has, or checks it; what records of this request have had before is known.
    private mutating func admit(
        _ fields: [String: CloudValue], of type: String, into schema: inout CloudSchema
    ) throws(CloudError) {
        if let known = admitted[type], fields.allSatisfy({ known[$0] == $1.type && $1.isWhollyFinite }) { return }
        _ = try schema.admit(type, fields: fields, limits: engine.limits, isFixed: engine.environment == .production)
        for (name, value) in fields {
            // A list without elements may be of any type.
            if case .list(let elements, _) = value, elements.isEmpty { continue }
            admitted[type, default: [:]][name] = value.type
        }
    }

    private func checkPresent(
        _ name: String, _ what: String, _ known: [String: StoredRecord], _ rows: any CloudTransaction
    ) throws(CloudError) {
        var found = known[name]
        if found == nil { found = try rows.records([name], in: zone.id)[name] }
        guard let found, !found.isDeleted else {
            throw CloudError(.referenceViolation, "\(what) refers to the record '\(name)', which is not there")
        }
    }

    /// Those that go with a record, and with these, and so on.
    private func dependents(
        of name: String, _ known: [String: StoredRecord], _ rows: any CloudTransaction
    ) throws(CloudError) -> [StoredRecord] {
        var (found, seen, next): ([StoredRecord], Set<String>, [String]) = ([], [name], [name])
        while !next.isEmpty {
            let names = try rows.dependents(of: next, in: zone.id).filter { seen.insert($0).inserted }
            let stored = try rows.records(names, in: zone.id)
            for name in names {
                // What this request has changed already is what counts.
                if let record = known[name] ?? stored[name], !record.isDeleted { found.append(record) }
            }
            next = names
        }
        return found
    }
}

extension StoredRecord {
    /// Leaves a tombstone.
    fileprivate mutating func clear() {
        isDeleted = true
        fields = Data()
        parent = nil
        (dependsOn, assets, indexed) = ([], [], [:])
    }
}
