import Foundation
package import GRDB
import TidemarkSQLite

/// The part of a store's state that observations compare: the end of history, and the generation of the schema.
package struct ChangeMark: Hashable, Sendable {
    /// The generation of the schema. It also changes when the store is emptied.
    package let schema: Int64
    /// The number of the last change in history.
    package let change: Int64
}

extension RecordSource {
    /// Returns the mark of the state that a transaction sees.
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

    /// Returns whether records of some types may have changed between two marks. The answer is `true` when history no longer has
    /// the changes.
    ///
    /// - Parameters:
    ///   - types: The numbers of the types.
    ///   - old: The mark of an earlier state.
    ///   - new: The mark of the state that the transaction sees.
    /// - Complexity: O(n) in the changes between the marks, up to the first one of these types.
    package func hasChanged(_ db: Database, types: Set<Int64>, from old: ChangeMark, to new: ChangeMark) throws -> Bool {
        guard old != new else { return false }
        // The schema has changed, the store was restored from a backup, or the history between the marks was purged.
        guard old.schema == new.schema, old.change <= new.change, try HistoryFloor(db).change <= old.change + 1 else {
            return true
        }
        guard !types.isEmpty else { return false }
        let list = types.sorted().map { "\($0)" }.joined(separator: ", ")
        let sql = "SELECT EXISTS (SELECT 1 FROM tide_changes WHERE id > ? AND type_id IN (\(list)))"
        return try Bool.fetchOne(db.cachedStatement(sql: sql), arguments: [old.change]) ?? false
    }

    /// Returns the numbers of the record types whose tables a statement reads.
    ///
    /// - Parameter region: The region that the statement reads, as SQLite reports it. It includes views and subqueries.
    package func types(_ db: Database, readIn region: DatabaseRegion) throws -> Set<Int64> {
        let read = try schema.types(db).filter { region.isModified(byEventsOfKind: .insert(tableName: $0.table)) }
        return Set(read.map(\.id))
    }

    /// Returns the numbers of the record types of some names. Names that the store does not have are left out.
    package func types(_ db: Database, named names: Set<String>) throws -> Set<Int64> {
        Set(try schema.types(db).filter { names.contains($0.name) }.map(\.id))
    }
}
