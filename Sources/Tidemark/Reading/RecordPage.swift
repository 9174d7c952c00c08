import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A part of an ordered list of records, as ``RecordReading/fetchPage(_:where:sortedBy:after:limit:)`` returns it.
public struct RecordPage<R: Record>: Sendable {
    /// The records of the page, in order.
    public let records: [R]
    /// The cursor of the next page; `nil` when this is the last page.
    public let next: PageCursor?
}

/// A position in an ordered list of records: the position after the last record of a page.
///
/// It has the values by which that record is sorted, and the record's name. So it stays valid while others insert, change and
/// delete records, and after the program has ended. It can be saved (`Codable`) and sent as a text (``description``). The text is
/// not encrypted: a person who has it can read these values.
public struct PageCursor: Hashable, Sendable {
    /// The order of the list. A cursor of another order is refused.
    let order: [String]
    let values: [Value]
    /// The store and the row of the record. They decide only between records that are equal in the order and in the name.
    let scope: Int
    let row: Int64

    /// A stored value.
    enum Value: Hashable, Sendable {
        case null
        case integer(Int64)
        case real(Double)
        case text(String)
        case bytes(Data)
    }
}

extension PageCursor.Value {
    init(_ value: DatabaseValue) {
        switch value.storage {
        case .null: self = .null
        case .int64(let number): self = .integer(number)
        case .double(let number): self = .real(number)
        case .string(let text): self = .text(text)
        case .blob(let data): self = .bytes(data)
        }
    }

    var databaseValue: DatabaseValue {
        switch self {
        case .null: .null
        case .integer(let number): number.databaseValue
        case .real(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .bytes(let data): data.databaseValue
        }
    }
}

extension PageCursor.Value: Codable {
    private enum Key: String, CodingKey { case i, r, t, b }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        if let number = try container.decodeIfPresent(String.self, forKey: .i) {
            guard let number = Int64(number) else { throw PageCursor.invalid }
            self = .integer(number)
        } else if let bits = try container.decodeIfPresent(String.self, forKey: .r) {
            guard let bits = UInt64(bits), case let number = Double(bitPattern: bits), number.isFinite else {
                throw PageCursor.invalid
            }
            self = .real(number)
        } else if let text = try container.decodeIfPresent(String.self, forKey: .t) {
            self = .text(text)
        } else if let data = try container.decodeIfPresent(Data.self, forKey: .b) {
            self = .bytes(data)
        } else {
            self = .null
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        // Numbers are written as texts, because not every reader of JSON keeps 64 bits.
        switch self {
        case .null: break
        case .integer(let number): try container.encode("\(number)", forKey: .i)
        case .real(let number): try container.encode("\(number.bitPattern)", forKey: .r)
        case .text(let text): try container.encode(text, forKey: .t)
        case .bytes(let data): try container.encode(data, forKey: .b)
        }
    }
}

extension PageCursor: Codable, LosslessStringConvertible {
    private struct Content: Codable {
        let order: [String]
        let values: [Value]
        let scope: Int
        let row: Int64
    }

    fileprivate static let invalid = DecodingError.dataCorrupted(
        .init(codingPath: [], debugDescription: "the text is no cursor of a page"))

    /// Reads a cursor from its text; `nil` for any other text.
    public init?(_ description: String) {
        guard description.utf8.count <= 1 << 20, let bytes = Base64URL.bytes(description),
            // The caller reports a text that is not a cursor.
            let content = try? JSONDecoder().decode(Content.self, from: Data(bytes))
        else { return nil }
        (order, values, scope, row) = (content.order, content.values, content.scope, content.row)
    }

    /// The cursor as a text of letters, digits, `-` and `_`.
    public var description: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys]
        do {
            return Base64URL.text(try encoder.encode(Content(order: order, values: values, scope: scope, row: row)))
        } catch {
            // Texts, bytes and numbers as texts can always be encoded.
            preconditionFailure("the cursor of a page can't be encoded: \(error)")
        }
    }

    public init(from decoder: any Decoder) throws {
        guard let cursor = PageCursor(try decoder.singleValueContainer().decode(String.self)) else { throw Self.invalid }
        self = cursor
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension RecordReading {
    /// Returns a page of the records that match, in the given order, and the cursor of the next page.
    ///
    /// ```swift
    /// var page = try await journal.fetchPage(Destination.self, sortedBy: [.descending(\.createdAt)], limit: 50)
    /// show(page.records)
    /// while let next = page.next {
    ///     page = try await journal.fetchPage(Destination.self, sortedBy: [.descending(\.createdAt)], after: next, limit: 50)
    ///     show(page.records)
    /// }
    /// ```
    ///
    /// Records that are equal in the order are sorted by their names. Without an order, records are in the order of insertion. A
    /// record that is not inserted, changed or deleted meanwhile is in exactly one page. A record that can't be read as its type
    /// is left out, and its name is logged.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - predicate: The condition; `nil` for all records. The same for all pages.
    ///   - sorts: The order; the same for all pages.
    ///   - cursor: The cursor of the page before; `nil` for the first page.
    ///   - limit: The maximum number of records of the page; 1 or more.
    /// - Throws: ``StoreError`` `invalid` for a cursor of another order, or a limit below 1; as
    ///   ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: O(log m + n), with m records of the type and n of the page, if an index begins with the first field of the
    ///   order; otherwise O(m).
    public func fetchPage<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = [],
        after cursor: PageCursor? = nil, limit: Int
    ) async throws -> RecordPage<R> {
        guard limit > 0, limit < Int.max else {
            throw StoreError(.invalid, "the limit of a page can't be \(limit); use 1 or more")
        }
        // The name decides between records that are equal otherwise, so that the order is total.
        let sorts = sorts.isEmpty ? [] : sorts + [.ascending("_name")]
        let order = sorts.map(\.signature)
        if let cursor, cursor.order != order || cursor.values.count != sorts.count {
            throw StoreError(
                .invalid, "the cursor belongs to a list in another order; use it with the sorts of the page it comes from")
        }
        let elements = try await recordSources.fetchAll(
            type, where: predicate, sortedBy: sorts, after: cursor, limit: limit + 1
        ) { record, row, queried, source in
            let keys = queried.sortColumns(sorts.count).map { PageCursor.Value(row[$0] as DatabaseValue) }
            let id: Int64 = try row.decode(Int64.self, atIndex: queried.rowColumn(sorts.count))
            return (
                record: record,
                cursor: PageCursor(order: order, values: keys, scope: source.scope.databaseScope.rawValue, row: id)
            )
        }
        let page = elements.prefix(limit)
        return RecordPage(records: page.map(\.record), next: elements.count > limit ? page.last?.cursor : nil)
    }
}

extension RecordSort {
    /// A text that identifies the sort.
    fileprivate var signature: String {
        let kind =
            switch order.kind {
            case .binary: "binary"
            case .caseInsensitive: "caseInsensitive"
            case .decimal: "decimal"
            case .localized(let locale): "localized:\(locale)"
            }
        return "\(field) \(isDescending ? "descending" : "ascending") \(kind)"
    }
}

/// The condition that a record comes after a cursor.
struct KeysetCondition {
    /// The bound of the first sort, with which SQLite can begin inside an index.
    private enum Bound {
        case none
        /// Values from the cursor's on.
        case values
        /// No value. In a descending order these records come last.
        case nothing
    }

    private let cursor: PageCursor
    private let scope: Int
    private let bound: Bound

    /// Returns the conditions of queries that return the records after a cursor. The queries run one after the other.
    ///
    /// - Parameter scope: The store whose records are read. Of records that are equal in the order, those of the private store come first.
    static func parts<R: Record>(_ cursor: PageCursor, in scope: StoreScope, _ sorts: [RecordSort<R>]) -> [KeysetCondition] {
        func part(_ bound: Bound) -> KeysetCondition {
            KeysetCondition(cursor: cursor, scope: scope.databaseScope.rawValue, bound: bound)
        }
        guard let sort = sorts.first, let value = cursor.values.first, value != .null else { return [part(.none)] }
        return sort.isDescending ? [part(.values), part(.nothing)] : [part(.values)]
    }

    private init(cursor: PageCursor, scope: Int, bound: Bound) { (self.cursor, self.scope, self.bound) = (cursor, scope, bound) }

    /// Returns the condition in SQL.
    ///
    /// - Parameter terms: The terms by which records are sorted, with their collations.
    func sql(_ terms: [(sql: String, isDescending: Bool)]) -> (sql: String, arguments: StatementArguments) {
        var arguments = StatementArguments()
        var alternatives: [String] = []
        var prefix = ""
        if let first = terms.first, let value = cursor.values.first {
            switch bound {
            case .none: break
            case .values:
                prefix = "\(first.sql) \(first.isDescending ? "<=" : ">=") ? AND "
                arguments += [value.databaseValue]
            case .nothing: prefix = "\(first.sql) IS NULL AND "
            }
        }
        for (index, (term, value)) in zip(terms, cursor.values).enumerated() {
            // NULL comes before all values, and so last in a descending order.
            let after: String
            switch (value, term.isDescending) {
            case (.null, true): continue
            case (.null, false): after = "\(term.sql) IS NOT NULL"
            case (_, true): after = "(\(term.sql) < ? OR \(term.sql) IS NULL)"
            case (_, false): after = "\(term.sql) > ?"
            }
            let conditions = equal(terms.prefix(index), &arguments) + [after]
            if value != .null { arguments += [value.databaseValue] }
            alternatives.append("(\(conditions.joined(separator: " AND ")))")
        }
        if scope >= cursor.scope {
            var conditions = equal(terms.prefix(terms.count), &arguments)
            if scope == cursor.scope {
                conditions.append("_id > ?")
                arguments += [cursor.row]
            }
            alternatives.append("(\((conditions.isEmpty ? ["1"] : conditions).joined(separator: " AND ")))")
        }
        return (prefix + "(\((alternatives.isEmpty ? ["0"] : alternatives).joined(separator: " OR ")))", arguments)
    }

    private func equal(
        _ terms: ArraySlice<(sql: String, isDescending: Bool)>, _ arguments: inout StatementArguments
    ) -> [String] {
        zip(terms, cursor.values).map { term, value in
            arguments += [value.databaseValue]
            return "\(term.sql) IS ?"
        }
    }
}
