import GRDB
import TidemarkModel
import TidemarkSQLite

/// Decides, within one transaction, what the user may do to records of a shared store, by what is known of their shares.
final class SharedPermissions {
    private let zones: Set<Int64>
    private let coverage: [Int64: ShareCoverage]

    /// `nil` where no permission is needed: in the user's own store, and in a shared store without another owner's zone.
    init?(_ db: Database, scope: StoreScope) throws {
        guard scope == .shared, try StoreZone.areSeveral(db) else { return nil }
        let known = try StoreZone.fetchAll(db)
        zones = Set(known.map(\.id)).subtracting([StoreFormat.defaultZone])
        let byName = Dictionary(
            grouping: try StoredShares(db).fetchAll(scope: scope, participants: .owner), by: \.zone)
        coverage = Dictionary(uniqueKeysWithValues: known.map { ($0.id, ShareCoverage(byName[$0.name] ?? [])) })
    }

    /// Returns whether the user may do something to a record, by the share that covers it.
    func decide(_ operation: SharePolicy.Operation, record: String, zone: Int64) -> ShareDecision {
        guard let share = coverage[zone]?.share(of: record) else {
            // A record in no zone of another owner was never another person's.
            let isUnsaved = !zones.contains(zone)
            return SharePolicy.decide(operation, on: .init(scope: .shared, isUnsaved: isUnsaved), by: .stranger)
        }
        return SharePolicy.decide(operation, on: share.target(record: record), by: share.actor)
    }

    private func check(_ operation: SharePolicy.Operation, _ record: RecordName, zone: Int64) throws {
        let decision = decide(operation, record: record.name, zone: zone)
        guard decision.isAllowed else { throw PermissionDenied(record: record, decision: decision) }
    }

    /// - Throws: `PermissionDenied` for the first record that may not be written. Unchanged records are not checked.
    func check(_ records: [MergedRecord]) throws {
        for record in records {
            let operation: SharePolicy.Operation
            if record.changes == nil {
                guard record.row != nil else { continue }
                operation = .delete
            } else if record.row == nil {
                operation = .create
            } else {
                guard !record.isUnchanged else { continue }
                operation = .update
            }
            try check(operation, RecordName(type: record.type.name, name: record.name), zone: record.zone)
        }
    }

    /// - Throws: `PermissionDenied` for the first of some rows of a type.
    func check(_ operation: SharePolicy.Operation, _ rows: [Int64], type: StoredType, _ db: Database) throws {
        let statement = try db.cachedStatement(sql: "SELECT _key, _zone FROM \"\(type.table)\" WHERE _id = ?")
        for row in rows {
            guard let found = try Row.fetchOne(statement, arguments: [row]), let key = RecordKey.fromDatabaseValue(found[0])
            else {
                continue
            }
            try check(
                operation, RecordName(type: type.name, name: key.name), zone: found.stored("_zone", of: type.table))
        }
    }
}
