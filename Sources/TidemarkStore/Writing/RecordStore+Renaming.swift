import Foundation
import GRDB
package import TidemarkModel
import TidemarkSQLite

/// The result of renaming a record.
package struct RenameOutcome: Sendable {
    /// The name that the record has now.
    package let name: String
    /// The records whose references had the old name, and have the new name now.
    package let referring: [RecordName]
}

extension RecordStore {
    /// Renames a record. References to it in the same zone are changed in the same transaction.
    ///
    /// To history, and to the cloud, the record of the old name is deleted and one of the new name is inserted, in that order.
    ///
    /// - Parameters:
    ///   - name: Taken in the normal form C of Unicode.
    ///   - zone: In a shared store, the zone of the record; `nil` for any zone.
    /// - Throws: ``StoreError`` `notFound` where there is no such record, `invalid` where another record has the name, the name can't be one,
    ///   or the record is the root of a share, `damaged`; `PermissionDenied`. Then nothing is changed.
    /// - Complexity: Reads the tables of all types with references.
    package func rename(
        _ record: RecordName, to name: String, zone: Int64? = nil, author: TransactionAuthor
    ) throws -> RenameOutcome {
        try transactOrRefuse("rename \(record.name)", author: author) { transaction in
            try transaction.rename(record, to: name.composed, zone: zone)
        }
    }
}

extension StoreTransaction {
    fileprivate func rename(_ record: RecordName, to name: String, zone: Int64?) throws -> RenameOutcome {
        let type = try knownType(named: record.type)
        guard let found = try find(record.name, type: type, zone: zone) else {
            throw StoreError(.notFound, "there is no \(record.type) '\(record.name)'")
        }
        // A copy under another name would get a digest of its own, which would hide the damage.
        try found.checkIntact()
        guard !found.name.utf8.elementsEqual(name.utf8) else { return RenameOutcome(name: name, referring: []) }
        for other in connection.types {
            let keys = RecordKey.all(name: name)
            let sql = "SELECT _id FROM \"\(other.table)\" WHERE _key IN (?1, ?2) AND (_zone = ?3 OR ?4)"
            let isAnywhere = connection.scope == .private
            let row = try Int64.fetchOne(
                db.cachedStatement(sql: sql), arguments: [keys[0], keys[keys.count - 1], found.zone, isAnywhere])
            guard row == nil || row == found.row && other.id == type.id else {
                throw StoreError(.invalid, "a record of type \(other.name) has the name '\(name)'; choose another")
            }
        }
        let isRoot = "SELECT EXISTS (SELECT 1 FROM tide_shares WHERE zone = ? AND root = ?)"
        if try Bool.fetchOne(db.cachedStatement(sql: isRoot), arguments: [found.zone, found.name]) ?? false {
            throw StoreError(.invalid, "'\(found.name)' is the root of a share, which names it; stop sharing it first")
        }
        // Compared by bytes: Swift treats both normal forms of a name as equal, and SQL does not.
        var old: [String] = []
        for form in [found.name] + RecordKey.all(name: found.name).map(\.name)
        where !old.contains(where: { $0.utf8.elementsEqual(form.utf8) }) { old.append(form) }
        var edits: [RecordEdit] = []
        var referring: [RecordName] = []
        var values = found.state.values
        for other in connection.types where other.hasReferences {
            for (row, renamed) in try references(to: old, from: other, zone: found.zone, renamedTo: name) {
                if other.id == type.id, row == found.row {
                    values.merge(renamed) { $1 }
                    continue
                }
                guard let referrer = try find(row: row, type: other) else { continue }
                let it = RecordName(type: other.name, name: referrer.name)
                referring.append(it)
                edits.append(
                    RecordEdit(record: it, base: .any, values: renamed, fields: Set(renamed.keys), zone: edit(referrer.zone)))
            }
        }
        edits.insert(
            RecordEdit(
                record: RecordName(type: type.name, name: found.name), base: .any, values: nil, fields: [], zone: edit(found.zone)
            ), at: 0)
        leavesRelationships = true
        // The old row is deleted first, because the two names may differ only in their bytes.
        _ = try save(edits, blobs: [], policy: { _ in .overwrite })
        let new = RecordEdit(
            record: RecordName(type: type.name, name: name), base: .any, values: values, fields: Set(values.keys),
            zone: edit(found.zone))
        _ = try save([new], blobs: [], policy: { _ in .overwrite })
        return RenameOutcome(name: name, referring: referring)
    }

    /// The zone of an edit, which a private store needs for records outside the default zone.
    private func edit(_ zone: Int64) -> Int64? { connection.scope == .private && zone == StoreFormat.defaultZone ? nil : zone }

    /// Returns the records of a type whose references have one of the old names, with the new values of these fields.
    private func references(
        to old: [String], from type: StoredType, zone: Int64, renamedTo name: String
    ) throws -> [(row: Int64, values: [String: FieldValue])] {
        var found: [Int64: [String: FieldValue]] = [:]
        let names = old.map { Array($0.utf8) }
        func isOld(_ text: String) -> Bool { names.contains { text.utf8.elementsEqual($0) } }
        for field in type.fields where field.type.scalar == .reference {
            let places = old.map { _ in "?" }.joined(separator: ", ")
            let condition =
                field.type.isList
                ? "EXISTS (SELECT 1 FROM \(StoredText.elementsSQL(of: "\"\(field.column)\"")) WHERE value IN (\(places)))"
                : "\"\(field.column)\" IN (\(places))"
            // In a private store a name is in one zone at most, so references in all zones mean it.
            let isAnywhere = connection.scope == .private ? "TRUE" : "FALSE"
            let sql = """
                SELECT _id, "\(field.column)" FROM "\(type.table)" WHERE (_zone = ? OR \(isAnywhere)) AND \(condition) ORDER BY _id
                """
            for row in try Row.fetchAll(db, sql: sql, arguments: [zone] + StatementArguments(old)) {
                guard let value = FieldValue(row[1] as DatabaseValue, type: field.type) else { continue }
                let id: Int64 = try row.stored("_id", of: type.table)
                switch value {
                case .reference: found[id, default: [:]][field.name] = .reference(name)
                case .list(let elements, let scalar):
                    let renamed = elements.map { element in
                        if case .reference(let old) = element, isOld(old) { FieldValue.reference(name) } else { element }
                    }
                    found[id, default: [:]][field.name] = .list(renamed, of: scalar)
                case .string, .int64, .double, .timestamp, .bytes, .location, .asset: continue
                }
            }
        }
        return found.sorted { $0.key < $1.key }.map { (row: $0.key, values: $0.value) }
    }
}
