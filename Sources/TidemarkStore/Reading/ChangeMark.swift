import Foundation
package import GRDB
import TidemarkSQLite

/// The state of a store, as far as observations compare it: where history ends, and which schema there is.
package struct ChangeMark: Hashable, Sendable {
    /// The generation of the schema. An emptied store has another one, too.
    package let schema: Int64
    /// The number of the last change in history.
    package let change: Int64
}

extension RecordSource {
    /// The mark of the state that a transaction sees.
    ///
    /// - Complexity: Three look-ups.
    package func changeMark(_ db: Database) throws -> ChangeMark {
        let sql = """
            SELECT (SELECT value FROM tide_meta WHERE key = 'schema_generation'),
                max(coalesce((SELECT max(id) FROM tide_changes), 0),
                    coalesce((SELECT last_change FROM tide_transactions ORDER BY id DESC LIMIT 1), 0))
            """
        let row = try Row.fetchOne(db.cachedStatement(sql: sql))
        guard let schema = row.flatMap({ Int64.fromDatabaseValue($0[0]) }),
            let change = row.flatMap({ Int64.fromDatabaseValue($0[1]) })
        else { throw StoreError(.corrupt, "\(container.store(scope).path) lacks its schema_generation in tide_meta") }
        return ChangeMark(schema: schema, change: change)
    }

    /// Whether records of some types may have changed between two marks; also when history no longer tells.
    ///
    /// - Parameters:
    ///   - types: The numbers of the types.
    ///   - old: The mark of an earlier state.
    ///   - new: The mark of the state that the transaction sees.
    /// - Complexity: O(n) in the changes between the marks, up to the first one of these types.
    package func hasChanged(_ db: Database, types: Set<Int64>, from old: ChangeMark, to new: ChangeMark) throws -> Bool {
        guard old != new else { return false }
        // Another schema, a store that was put back, a history that was purged too far.
        guard old.schema == new.schema, old.change <= new.change, try HistoryFloor(db).change <= old.change + 1 else {
            return true
        }
        guard !types.isEmpty else { return false }
        let list = types.sorted().map { "\($0)" }.joined(separator: ", ")
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_changes WHERE id > ? AND type_id IN (\(list)))"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [old.change]) ?? false
    }

    /// The numbers of the record types whose tables a statement reads.
    ///
    /// - Parameter region: What SQLite says that the statement reads, through views and in subqueries as well.
    package func types(_ db: Database, readIn region: DatabaseRegion) throws -> Set<Int64> {
        let read = try schema.types(db).filter { region.isModified(byEventsOfKind: .insert(tableName: $0.table)) }
        return Set(read.map(\.id))
    }

    /// The numbers of the record types of some names; those that the store does not have are left out.
    package func types(_ db: Database, named names: Set<String>) throws -> Set<Int64> {
        Set(try schema.types(db).filter { names.contains($0.name) }.map(\.id))
    }
}
