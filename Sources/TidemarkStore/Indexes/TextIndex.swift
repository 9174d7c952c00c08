import Foundation
package import GRDB
import TidemarkModel
import TidemarkSQLite

/// A full-text index of a record type: an FTS5 table with the texts of its fields, by the rows' ids.
///
/// The FTS5 table has a copy of the texts, and does not read them in the type's table. So an entry can be removed without its former
/// text, which a flipped bit may have changed, and the excerpts of a result are those that the index has.
package struct TextIndex {
    let table: String
    /// The type's table and its columns, which the FTS5 table has as well.
    private let source: String
    private let columns: [String]
    private let language: String?
    private let typeID: Int64

    init(_ type: StoredType, _ index: FieldIndex) {
        (source, language, typeID) = (type.table, index.language, type.id)
        columns = type.columns(of: index)
        table = "tide_text_\(type.table).\(columns.joined(separator: "."))"
    }

    /// The tokenizer of a language. Letters with and without diacritics are the same. English words are reduced to their stems; SQLite has
    /// no stemmer for any other language.
    private static func tokenizer(_ language: String?) -> String {
        let plain = "unicode61 remove_diacritics 2"
        return language?.lowercased().split(whereSeparator: { "-_".contains($0) }).first == "en" ? "porter \(plain)" : plain
    }

    /// - Throws: ``StoreError`` `schema` unless the text is a language tag, such as `de` or `en-GB`.
    static func checkLanguage(_ language: String) throws(StoreError) {
        let parts = language.split(separator: "-", omittingEmptySubsequences: false)
        guard language.utf8.count <= 35, (2...3).contains(parts[0].utf8.count),
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0 | 0x20) } }
            )
        else { throw StoreError(.schema, "'\(language.prefix(50))' is no language tag, such as de or en-GB") }
        guard Locale.LanguageCode(parts[0].lowercased()).isISOLanguage else {
            throw StoreError(.schema, "'\(parts[0])' is no language of ISO 639; write a tag such as de or en-GB")
        }
    }

    private var quoted: String { columns.map { "\"\($0)\"" }.joined(separator: ", ") }

    /// Makes the FTS5 table, and fills it from the type's.
    ///
    /// - Complexity: O(n) in the texts.
    func build(_ db: Database) throws {
        try drop(db)
        try db.execute(sql: "CREATE VIRTUAL TABLE \"\(table)\" USING fts5(\(quoted), tokenize = '\(Self.tokenizer(language))')")
        try insert(db, where: "true")
    }

    func drop(_ db: Database) throws { try db.execute(sql: "DROP TABLE IF EXISTS \"\(table)\"") }

    private func insert(_ db: Database, where condition: String) throws {
        let isText = columns.map { "\"\($0)\" IS NOT NULL" }.joined(separator: " OR ")
        try db.execute(
            sql: """
                INSERT INTO "\(table)" (rowid, \(quoted)) SELECT _id, \(quoted) FROM "\(source)" WHERE \(condition) AND (\(isText))
                """)
    }

    // Changes

    /// The rows whose entries are to be replaced at the end of the transaction. It is a temporary table, so that a rollback empties it
    /// and no other process sees it.
    private static let changes = "temp.tide_text_rows"

    /// Has a connection note the rows of the types that have full-text indexes as they change.
    ///
    /// SQLite before 3.41 lets no trigger write to an FTS5 table, unless it trusts the file's schema.
    static func watch(_ db: Database, _ types: [StoredType]) throws {
        let watched = types.filter { $0.indexes.contains { $0.index.kind == .fullText } }
        let isWatching = try Bool.fetchOne(
            db, sql: "SELECT EXISTS (SELECT 1 FROM sqlite_temp_master WHERE name GLOB 'tide_text_*')")
        guard isWatching == true || !watched.isEmpty else { return }
        let old = try String.fetchAll(
            db, sql: "SELECT name FROM sqlite_temp_master WHERE type = 'trigger' AND name GLOB 'tide_text_*'")
        for name in old { try db.execute(sql: "DROP TRIGGER temp.\"\(name)\"") }
        try db.execute(
            sql: """
                CREATE TEMP TABLE IF NOT EXISTS tide_text_rows (
                    type_id INTEGER NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (type_id, row)
                ) WITHOUT ROWID
                """)
        for type in watched {
            let columns = Set(type.indexes.filter { $0.index.kind == .fullText }.flatMap { type.columns(of: $0.index) }).sorted()
            let events = [
                ("insert", "INSERT", "new"), ("delete", "DELETE", "old"),
                ("update", "UPDATE OF \(columns.map { "\"\($0)\"" }.joined(separator: ", "))", "new"),
            ]
            for (name, event, row) in events {
                try db.execute(
                    sql: """
                        CREATE TEMP TRIGGER "tide_text_\(name)_\(type.table)" AFTER \(event) ON main."\(type.table)" BEGIN
                            INSERT OR IGNORE INTO tide_text_rows (type_id, row) VALUES (\(type.id), \(row)._id);
                        END
                        """)
            }
        }
    }

    /// Replaces the entries of the rows that were noted. Before the transaction is committed.
    static func replaceChanged(_ db: Database, _ types: [StoredType]) throws {
        let indexes = types.flatMap { type in
            type.indexes.filter { $0.index.kind == .fullText }.map { TextIndex(type, $0.index) }
        }
        guard !indexes.isEmpty else { return }
        for index in indexes { try index.replaceChanged(db) }
        try db.execute(sql: "DELETE FROM \(changes)")
    }

    private func replaceChanged(_ db: Database) throws {
        let rows = "(SELECT row FROM \(Self.changes) WHERE type_id = \(typeID))"
        do {
            try db.inSavepoint {
                try db.execute(sql: "DELETE FROM \"\(table)\" WHERE rowid IN \(rows)")
                try insert(db, where: "_id IN \(rows)")
                return .commit
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            // It holds nothing that the records do not have.
            try build(db)
        }
    }

    /// Whether the index has an entry for each row with a text, and for no other. Reads nothing of the words.
    package func isComplete(_ db: Database) throws -> Bool {
        guard try db.tableExists(table) else { return false }
        let isText = columns.map { "\"\($0)\" IS NOT NULL" }.joined(separator: " OR ")
        let sql = """
            SELECT NOT EXISTS (SELECT _id FROM "\(source)" WHERE \(isText) EXCEPT SELECT id FROM "\(table)_docsize")
            AND NOT EXISTS (SELECT id FROM "\(table)_docsize" EXCEPT SELECT _id FROM "\(source)")
            """
        return try Bool.fetchOne(db, sql: sql) ?? false
    }

    /// Has FTS5 check the words of the index. It has to write for that.
    func isSound(_ db: Database) throws -> Bool {
        do {
            try db.execute(sql: "INSERT INTO \"\(table)\" (\"\(table)\") VALUES ('integrity-check')")
            return try isComplete(db)
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT {
            return false
        }
    }
}
