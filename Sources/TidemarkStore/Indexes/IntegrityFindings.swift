package import GRDB
import TidemarkModel
package import TidemarkSQLite

/// What SQLite's integrity check finds in a store: what concerns only indexes of values, which can be built again from their tables, and
/// everything else.
package struct IntegrityFindings: Sendable, Equatable {
    /// The names of the indexes that do not match their tables.
    package private(set) var indexes: [String] = []
    /// What SQLite says of the rest; no more than 20.
    package private(set) var others: [String] = []

    /// - Complexity: Reads the whole database.
    package init(_ db: Database) throws {
        // Each damaged row is a finding, and is not to hide those of another kind.
        let findings = try String.fetchAll(db, sql: "PRAGMA integrity_check(10000)").filter { $0 != "ok" }
        guard !findings.isEmpty else { return }
        let rebuildable = try Self.rebuildable(db)
        var found: Set<String> = []
        for finding in findings {
            if let name = Self.index(in: finding), rebuildable.contains(name) {
                if found.insert(name).inserted { indexes.append(name) }
            } else if others.count < 20 {
                others.append(finding)
            }
        }
    }

    /// The indexes of the types' tables, without those of the names. That one of names is unique, and a name is in no digest's place.
    private static func rebuildable(_ db: Database) throws -> Set<String> {
        let sql = """
            SELECT m.name FROM main.sqlite_master m JOIN tide_types t ON m.tbl_name = t.table_name COLLATE NOCASE
            WHERE m.type = 'index' AND m.sql IS NOT NULL AND m.name <> 'tide_name_' || t.table_name
            """
        return try Set(String.fetchAll(db, sql: sql))
    }

    /// The index that a finding is about; `nil` where it is about anything else.
    private static func index(in finding: String) -> String? {
        if let name = rest(of: finding, after: "wrong # of entries in index ") { return name }
        guard finding.hasPrefix("row ") else { return nil }
        let afterRow = finding.dropFirst(4).drop { $0.isNumber || $0 == "-" }
        return rest(of: String(afterRow), after: " missing from index ")
            ?? rest(of: String(afterRow), after: " values differ from index ")
    }

    private static func rest(of text: String, after prefix: String) -> String? {
        text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : nil
    }
}

extension RecordStore {
    /// Builds the indexes that do not match their tables again, from the tables.
    ///
    /// - Returns: The names of these indexes.
    /// - Complexity: Reads the whole database.
    package func rebuildDamagedIndexes() throws(StoreError) -> [String] {
        try connection.locked("rebuild indexes") { db in
            try connection.refreshSchema(db)
            var rebuilt = try IntegrityFindings(db).indexes
            for name in rebuilt { try db.execute(sql: "REINDEX main.\"\(name.replacing("\"", with: "\"\""))\"") }
            for type in connection.types {
                for stored in type.indexes where stored.index.kind == .fullText {
                    let index = TextIndex(type, stored.index)
                    guard try !index.isSound(db) else { continue }
                    try index.build(db)
                    rebuilt.append(index.table)
                }
            }
            return (rebuilt, rebuilt.isEmpty ? .rollback : .commit)
        }
    }
}

extension StoredType {
    /// The names of the full-text indexes that lack records, or have those of others.
    package func incompleteTextIndexes(_ db: Database) throws -> [String] {
        try indexes.filter { $0.index.kind == .fullText }.map { TextIndex(self, $0.index) }
            .filter { try !$0.isComplete(db) }.map(\.table)
    }

    /// Runs statements that change rows of the table. If an index lacks the entry of a row, because a bit was flipped in the one or the
    /// other, the indexes of the table are built again, and the statements run once more.
    ///
    /// - Parameter withNames: Whether the index of the names may be built again, too. Not where a name may be damaged.
    func rebuildingIndexes(_ db: Database, withNames: Bool = false, _ body: () throws -> Void) throws {
        do {
            try db.inSavepoint {
                try body()
                return .commit
            }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CORRUPT_INDEX {
            try rebuildIndexes(db, withNames: withNames)
            try body()
        }
    }
}
