import CTideCore
import Foundation
package import GRDB
package import TidemarkModel
package import TidemarkSQLite

extension FormatMigrations {
    /// Those of the stores of a container. Format 4 is the oldest that was frozen.
    package static let stores = FormatMigrations(
        applicationID: StoreFormat.applicationID, oldest: 4,
        steps: [
            Step("tables for declared relationships and indexes, and indexes of references") { db in
                try db.execute(
                    sql: """
                        CREATE TABLE tide_relationships (
                            type_id INTEGER NOT NULL, field TEXT NOT NULL, target TEXT NOT NULL, owning INTEGER NOT NULL,
                            delete_rule TEXT NOT NULL, PRIMARY KEY (type_id, field)
                        ) STRICT, WITHOUT ROWID;
                        CREATE TABLE tide_indexes (
                            type_id INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, fields TEXT NOT NULL,
                            options TEXT NOT NULL DEFAULT '', PRIMARY KEY (type_id, name)
                        ) STRICT, WITHOUT ROWID;
                        """)
                let indexes = try String.fetchAll(
                    db,
                    sql: """
                        SELECT printf('CREATE INDEX IF NOT EXISTS "tide_reference_%w.%w" ON "%w" ("%w")',
                            t.table_name, f.column_name, t.table_name, f.column_name)
                        FROM tide_types t JOIN tide_fields f ON f.type_id = t.id WHERE f.type = \(FieldType.reference.code.rawValue)
                        ORDER BY t.id, f.ordinal
                        """)
                for index in indexes { try db.execute(sql: index) }
            }
        ]
    ).adding(testOnlySteps.all)

    /// Empty but in a process of the tests: by these steps it becomes one of a newer version.
    package static let testOnlySteps = TestOnlySteps()

    /// Steps that a test sets before ``stores`` is first used.
    package final class TestOnlySteps: Sendable {
        private let steps = LockedValue<[Step]>([])

        package var all: [Step] {
            get { steps.withLock { $0 } }
            set { steps.withLock { $0 = newValue } }
        }
    }

    /// Changes the values of a field in all rows of a type, and the rows' digests by the difference.
    ///
    /// - Parameter change: Returns the value that replaces a stored one.
    /// - Complexity: Reads the table once and writes the rows that change.
    package static func rewrite(
        _ db: Database, of field: String, in type: String, _ change: (DatabaseValue) throws -> FieldValue?
    ) throws {
        guard let type = try StoredType.fetchAll(db).first(where: { $0.name == type }),
            let index = type.fields.firstIndex(where: { $0.name == field })
        else { return }
        let columns = type.fields.map { "\"\($0.column)\"" }
        let select = try db.makeStatement(
            sql: """
                SELECT _id, _key, _digest, \(columns.joined(separator: ", ")) FROM "\(type.table)" WHERE _id > ?
                ORDER BY _id LIMIT 1000
                """)
        let update = try db.makeStatement(sql: "UPDATE \"\(type.table)\" SET \(columns[index]) = ?, _digest = ? WHERE _id = ?")
        var (last, isDone) = (Int64.min, false)
        while !isDone {
            isDone = true
            var changes: [(row: Int64, value: DatabaseValue, digest: Int64)] = []
            let rows = try Row.fetchCursor(select, arguments: [last])
            while let row = try rows.next() {
                isDone = false
                last = try row.decode(atIndex: 0)
                let (old, digest) = (row[3 + index] as DatabaseValue, try row.decode(Int64.self, atIndex: 2))
                let value = try change(old)
                guard (value?.stored ?? .null) != old else { continue }
                // While the statement stands at the row.
                let part = type.digest.parts(select, key: 1, digest: 2, fields: 3).parts[index]
                let sum = UInt64(bitPattern: digest) &- part &+ type.digest.part(of: value, field: index)
                changes.append((last, value?.stored ?? .null, Int64(bitPattern: sum)))
            }
            for it in changes {
                try type.rebuildingIndexes(db) { try update.execute(arguments: [it.value, it.digest, it.row]) }
            }
        }
        // No writer's triggers follow what a migration changes.
        for stored in type.indexes where stored.index.kind == .fullText && stored.index.fields.contains(field) {
            try TextIndex(type, stored.index).build(db)
        }
    }
}
