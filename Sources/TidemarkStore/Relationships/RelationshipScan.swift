package import GRDB
package import TidemarkModel
import TidemarkSQLite

/// Finds references that a relationship does not allow.
package enum RelationshipScan {
    /// A record whose reference is wrong.
    package struct Broken: Hashable, Sendable {
        /// What is wrong.
        package enum Reason: Hashable, Sendable {
            /// The record that it refers to is not there.
            case targetMissing
            /// The record's owner is shared, and the record is not in its share.
            case notInShareOfOwner
        }

        package let record: RecordName
        package let field: String
        package let target: RecordName
        package let isOwner: Bool
        package let reason: Reason
    }

    /// Returns the records of a type with wrong declared references. A shared store has none: records that are not shared are
    /// missing there.
    ///
    /// A weak reference of a record that is or was in another zone may lead nowhere: a participant of a share may refer to
    /// records of their own, which the owner never sees. Such a reference stays with a record that leaves the share, and leads to
    /// its record again when the record comes back.
    ///
    /// - Parameter limit: The most records to return.
    /// - Complexity: A look-up for each reference.
    package static func broken(
        _ db: Database, type: StoredType, among types: [StoredType], scope: StoreScope, limit: Int = 20
    ) throws -> [Broken] {
        guard scope == .private else { return [] }
        let shared = Set(try StoredShares(db).rows().map(\.zone))
        var found: [Broken] = []
        for relationship in type.relationships {
            let target = types.first { $0.name == relationship.target }
            let place = try target.map {
                try db.makeStatement(sql: "SELECT _zone FROM \"\($0.table)\" WHERE \(RecordKey.condition(in: $0.table))")
            }
            let column = "\"\(relationship.field.column)\""
            let rows = try Row.fetchCursor(
                db, sql: "SELECT _key, _zone, \(column), _edited FROM \"\(type.table)\" WHERE \(column) IS NOT NULL ORDER BY _id")
            while found.count < limit, let row = try rows.next() {
                guard let key = RecordKey.fromDatabaseValue(row[0]),
                    let value = FieldValue(row[2] as DatabaseValue, type: relationship.field.type)
                else { continue }
                let own: Int64 = try row.decode(atIndex: 1)
                let edited: String? = try row.decode(atIndex: 3)
                for name in value.referenceNames {
                    let keys = RecordKey.all(name: name)
                    let zone = try place.flatMap { try Int64.fetchOne($0, arguments: [keys[0], keys[keys.count - 1]]) }
                    let reason: Broken.Reason
                    if let zone {
                        guard relationship.isOwning, shared.contains(zone), !shared.contains(own) else { continue }
                        reason = .notInShareOfOwner
                    } else {
                        guard relationship.isOwning || own == StoreFormat.defaultZone && !hasMoved(edited) else { continue }
                        reason = .targetMissing
                    }
                    found.append(
                        Broken(
                            record: RecordName(type: type.name, name: key.name), field: relationship.field.name,
                            target: RecordName(type: relationship.target, name: name), isOwner: relationship.isOwning,
                            reason: reason))
                }
            }
        }
        return found
    }

    /// Returns whether a record was moved between zones, by the times of its edits.
    private static func hasMoved(_ edited: String?) -> Bool {
        edited.map { EditTimes($0).fields[EditTimes.move] != nil } ?? false
    }
}

extension RelationshipScan.Broken {
    /// The problem as a sentence for people.
    package var message: String {
        let (own, other) = ("\(record.type) \(record.name)", "\(target.type) \(target.name)")
        switch reason {
        case .targetMissing where isOwner: return "\(own) belongs to \(other) by '\(field)', and there is no such record"
        case .targetMissing: return "\(own) refers to \(other) by '\(field)', and there is no such record"
        case .notInShareOfOwner:
            return "\(own) belongs to \(other) by '\(field)', which is shared, and is not in the share itself"
        }
    }
}
