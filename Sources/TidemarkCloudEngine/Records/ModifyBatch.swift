import Foundation
import TidemarkCloud
import TidemarkModel

/// A request that changes records, while it runs.
struct ModifyBatch {
    let engine: CloudEngine
    let request: ModifyRecordsRequest
    let access: ShareAccess
    private let found: FoundOwners
    private var outcomes: [RecordOutcome?]
    var growth: SchemaGrowth
    var records: RecordCache
    /// The shared hierarchies of the zone; `nil` where it shares none.
    var hierarchies: ShareHierarchyIndex?
    var changed: [StoredCloudRecord] = []
    /// Names of records that were there before.
    var replaced: Set<String> = []
    /// The bytes that the request adds to each account's storage.
    var bytes: [String: Int64] = [:]
    /// The number of records that this request may still remove in addition to those that it names.
    var removable = CloudEngine.removedAtOnce
    /// Removals that earlier requests have left, and removals that this request leaves.
    var (pending, left): ([StoredRemoval], [StoredRemoval]) = ([], [])
    /// The number of the last change.
    var change: Int64
    let stamp: CloudRecord.Stamp
    /// Shares that end because their root is deleted.
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
        growth = SchemaGrowth(engine, by: access.caller.user)
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
                growth.beginOperation()
                guard let record = try decide(operation, before, schema: &grown, rows, zoneID) else {
                    outcomes[index] = .deleted(CloudRecordID(name, in: zoneID))
                    continue
                }
                if let before, record.isDeleted {
                    try delete(before, schema: schema, rows)
                    outcomes[index] = .deleted(CloudRecordID(name, in: zoneID))
                } else {
                    try growth.check(record.type, from: schema, to: grown)
                    let saved = try save(record, before, rows)
                    if growth.isGrowing { (schema, hasGrown) = (grown, true) }
                    outcomes[index] = .saved(try engine.record(saved, in: zoneID, keys: request.desiredKeys, access, rows))
                    if request.desiredKeys == nil { answered += saved.fields.count }
                }
            } catch {
                // A failing storage or an expired token is not the fault of one operation. It ends the request.
                guard error.code != .internalError, error.code != .changeTokenExpired else { throw error }
                failures[index] = error
                if error.serverRecord != nil { answered += try records.record(name, rows)?.fields.count ?? 0 }
                growth.forget()
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
        // Removed bytes are credited to the account that paid for them. Added bytes are paid by the caller, or by the owner who
        // shares.
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

    /// Counts a record's bytes in place of those of the record or tombstone that has its name.
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
}
