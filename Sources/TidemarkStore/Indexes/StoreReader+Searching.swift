import GRDB
import TidemarkModel
package import TidemarkSQLite

/// A record of any type that a search has found.
package struct FoundText: Sendable {
    /// The record's name.
    package let name: String
    /// How well it matches, by bm25; the greatest is the best.
    package let score: Double
    /// The piece of its text that matches best, with marks around the words.
    package let excerpt: String
}

extension StoreReader {
    /// Returns the records of a type whose texts have words, the best matches first.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - words: The words.
    ///   - limit: The maximum number of records.
    ///   - marks: What comes before and behind each word that was found.
    /// - Throws: ``StoreError`` `schema` when the store has no such type, or the type has no full-text index.
    package func search(
        _ type: String, _ words: SearchWords, limit: Int, marks: (start: String, end: String)
    ) throws(StoreError) -> [FoundText] {
        try read("search the records of \(type)") { db in
            guard let stored = try StoredType.fetchAll(db).first(where: { $0.name == type }) else {
                throw StoreError(.schema, "the store has no record type '\(type)'")
            }
            guard let index = stored.indexes.first(where: { $0.index.kind == .fullText }) else {
                throw StoreError(
                    .schema,
                    "\(type) has no full-text index; build one with `tidemark index add --type \(type) --full-text FIELD`")
            }
            guard let query = words.query else { return [] }
            let table = "\"\(TextIndex(stored, index.index).table)\""
            let rows = try Row.fetchAll(
                db,
                sql: """
                    SELECT r._key, bm25(\(table)), snippet(\(table), -1, ?, ?, '…', 16) FROM \(table)
                    JOIN "\(stored.table)" r ON r._id = \(table).rowid WHERE \(table) MATCH ? ORDER BY bm25(\(table)), r._id LIMIT ?
                    """, arguments: [marks.start, marks.end, query, limit])
            return try rows.compactMap { row in
                guard let key = RecordKey.fromDatabaseValue(row[0]) else { return nil }
                let (score, excerpt): (Double, String?) = (try row.decode(atIndex: 1), try row.decode(atIndex: 2))
                return FoundText(name: key.name, score: -score, excerpt: excerpt ?? "")
            }
        }
    }
}
