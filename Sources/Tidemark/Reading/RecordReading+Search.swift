import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A record that a search has found, as ``RecordReading/search(_:_:where:limit:)`` returns it.
public struct SearchResult<R: Record>: Sendable {
    /// The record.
    public let record: R
    /// The quality of the match; the best result has the greatest score. It is the negative of SQLite's bm25: a word counts more
    /// if it is rare, and if the text is short. Scores of different searches can't be compared.
    public let score: Double
    /// A piece of the text that matches best, with the places of the words that were found.
    public let excerpt: SearchExcerpt
    /// The full texts of the index, by their fields, with the places of the words that were found.
    public let texts: [String: SearchExcerpt]
}

/// A text, and the places of the words in it that a search has found.
public struct SearchExcerpt: Hashable, Sendable {
    /// The text. Where a part was left out, it has `…`.
    public let text: String
    /// The places of the words, in order.
    public let matches: [Range<String.Index>]

    /// Returns the text with marks around the words that were found.
    ///
    /// - Parameters:
    ///   - start: The mark before each word.
    ///   - end: The mark after each word.
    public func marked(_ start: String, _ end: String) -> String {
        var marked = ""
        var place = text.startIndex
        for match in matches {
            marked += text[place..<match.lowerBound] + start + text[match] + end
            place = match.upperBound
        }
        return marked + text[place...]
    }

    /// Makes an excerpt from a text with the marks that FTS5 has inserted.
    init(marked: String) {
        var text = ""
        // Places as numbers of UTF-8 bytes, because indices become invalid when the text grows.
        var places: [Range<Int>] = []
        var start: Int?
        for character in marked.unicodeScalars {
            switch character {
            case SearchWords.start: start = text.utf8.count
            case SearchWords.end:
                if let start { places.append(start..<text.utf8.count) }
                start = nil
            default: text.unicodeScalars.append(character)
            }
        }
        self.text = text
        matches = places.map { place in
            text.utf8.index(
                text.startIndex, offsetBy: place.lowerBound)..<text.utf8.index(text.startIndex, offsetBy: place.upperBound)
        }
    }
}

extension RecordPredicate {
    /// Matches records whose texts have the given words. It uses the full-text index of the type.
    ///
    /// ```swift
    /// let found = try await journal.fetchAll(
    ///     Destination.self, where: .matching("fjord") && \.rating >= 4, sortedBy: [.descending(\.createdAt)])
    /// ```
    ///
    /// - Parameter text: Words, all of which a record must have, in any order and in any of the index's fields. `"two words"` in quotation
    ///   marks are a phrase, and `fj*` is the beginning of a word. A text without a word matches nothing.
    public static func matching(_ text: String) -> RecordPredicate { RecordPredicate(.words(SearchWords(text))) }
}

extension RecordReading {
    /// Returns the records whose texts have the given words, the best matches first.
    ///
    /// ```swift
    /// for result in try await journal.search(Destination.self, "fjord", limit: 20) {
    ///     print(result.record.caption, result.excerpt.marked("[", "]"))
    /// }
    /// ```
    ///
    /// The type has a full-text index, by ``Record/indexes``, a schema file, or `tidemark index add --full-text`.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - text: The words, as for ``RecordPredicate/matching(_:)``.
    ///   - predicate: A further condition; `nil` for none.
    ///   - limit: The maximum number of results.
    /// - Returns: The results of both stores, by their scores. A record that can't be read as its type is left out, and logged.
    /// - Throws: ``StoreError`` `schema` when the type has no full-text index; as ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: O(n log n) in the records that match.
    public func search<R: Record>(
        _ type: R.Type, _ text: String, where predicate: RecordPredicate<R>? = nil, limit: Int = 50
    ) async throws -> [SearchResult<R>] {
        let (sources, words) = (recordSources, SearchWords(text))
        try sources.claims.check(type)
        var results: [SearchResult<R>] = []
        for source in sources.all {
            let found = try await source.read { db in
                try sources.withKnownFields(of: R.recordType) { known in
                    try source.search(db, type, words, where: predicate, limit: limit, known: known)
                }
            }
            UnreadableRecord.log(found.unreadable, as: type)
            results += found.results
        }
        // The sort is stable: of two results with the same score, the private store's comes first.
        let order = results.indices.sorted { (-results[$0].score, $0) < (-results[$1].score, $1) }
        return order.prefix(limit).map { results[$0] }
    }
}

extension QueriedType {
    /// The full-text indexes of the type.
    ///
    /// - Throws: ``StoreError`` `schema` when there is none.
    func searchableIndexes() throws -> [TextSearch] {
        guard !textIndexes.isEmpty else {
            throw StoreError(
                .schema,
                "\(name) has no full-text index. Declare one (`static var indexes: [RecordIndex<…>] { [.fullText(\\.…)] }`), or build it "
                    + "with `tidemark index add --full-text`")
        }
        return textIndexes
    }
}

extension RecordSource {
    fileprivate func search<R: Record>(
        _ db: Database, _ type: R.Type, _ words: SearchWords, where predicate: RecordPredicate<R>?, limit: Int, known: Set<String>
    ) throws -> (results: [SearchResult<R>], unreadable: [UnreadableRecord]) {
        try checkLimit(limit)
        guard let queried = try self.type(db, queriedAs: R.self), let index = try queried.searchableIndexes().first,
            let query = words.query
        else { return ([], []) }
        let typed = try TypedQuery<R>(queried, predicate?.node, [], limit: nil, known: known)
        let decoder = decoder(queried, type)
        var unreadable: [UnreadableRecord] = []
        var found: [(row: Int64, score: Double, record: R)] = []
        let ranking =
            "(SELECT rowid AS tide_row, bm25(\"\(index.table)\") AS tide_rank FROM \"\(index.table)\" WHERE \"\(index.table)\" MATCH ?)"
        let rows = try typed.ranked(db, ranking, query)
        while found.count < limit, let row = try typed.next(rows) {
            do {
                let record = try decoder.decode(row)
                found.append(
                    (
                        try row.decode(Int64.self, atIndex: queried.rowColumn(0)),
                        -(try row.decode(Double.self, atIndex: queried.rowColumn(0) + 1)), record
                    ))
            } catch {
                let name = StoreReader.recordName(key: row[QueriedType.keyColumn] as DatabaseValue) ?? "?"
                unreadable.append(UnreadableRecord(record: RecordName(type: R.recordType, name: name), error: error))
            }
        }
        let texts = try excerpts(db, index, query, of: found.map(\.row))
        let results = found.map { it in
            let text = texts[it.row]
            return SearchResult(
                record: it.record, score: it.score, excerpt: text?.excerpt ?? SearchExcerpt(marked: ""),
                texts: text?.fields ?? [:])
        }
        return (results, unreadable)
    }

    private func excerpts(
        _ db: Database, _ index: QueriedType.TextSearch, _ query: String, of rows: [Int64]
    ) throws -> [Int64: (excerpt: SearchExcerpt, fields: [String: SearchExcerpt])] {
        guard !rows.isEmpty else { return [:] }
        let table = "\"\(index.table)\""
        let (start, end) = ("char(\(SearchWords.start.value))", "char(\(SearchWords.end.value))")
        let highlights = index.fields.indices.map { "highlight(\(table), \($0), \(start), \(end))" }
        let statement = try db.makeStatement(
            sql: """
                SELECT snippet(\(table), -1, \(start), \(end), '…', 16), \(highlights.joined(separator: ", "))
                FROM \(table) WHERE \(table) MATCH ? AND rowid = ?
                """)
        var texts: [Int64: (excerpt: SearchExcerpt, fields: [String: SearchExcerpt])] = [:]
        for row in rows {
            guard let found = try Row.fetchOne(statement, arguments: [query, row]) else { continue }
            var fields: [String: SearchExcerpt] = [:]
            for (column, field) in index.fields.enumerated() {
                if let text = String.fromDatabaseValue(found[column + 1]) { fields[field] = SearchExcerpt(marked: text) }
            }
            texts[row] = (SearchExcerpt(marked: String.fromDatabaseValue(found[0]) ?? ""), fields)
        }
        return texts
    }
}
