import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkTransfer

/// The records of a type from both stores, in one order.
struct MergedRecords {
    private struct Entry {
        let scope: StoreScope
        let schema: RecordTypeSchema
        let record: StoredRecord
        let sortValue: FieldValue?
    }

    private let readers: [(reader: StoreReader, schema: RecordTypeSchema)]
    private let query: RecordQuery
    /// The fields of both stores, those of the first store first.
    private let schema: RecordTypeSchema

    /// - Parameter readers: The stores that have the type.
    init(_ readers: [StoreReader], _ query: RecordQuery) throws {
        self.query = query
        self.readers = try readers.map { ($0, try $0.type(named: query.type)) }
        var union = self.readers.first?.schema ?? RecordTypeSchema(name: query.type)
        for (_, schema) in self.readers.dropFirst() {
            for field in schema.fields where union.field(named: field.name) == nil { union.fields.append(field) }
        }
        schema = union
    }

    /// Shows each record. Without an order, the records of one store follow those of the other, as they are read.
    ///
    /// - Returns: The names of the damaged records among them.
    /// - Throws: ``StoreError`` if no store can answer the query. A store that lacks one of the query's fields is left out, with
    ///   a note.
    private func forEach(_ show: (Entry) throws -> Void) throws -> [String] {
        var (damaged, waiting, failures): ([String], [Entry], [(StoreScope, StoreError)]) = ([], [], [])
        func take(_ entry: Entry) throws {
            if !entry.record.isIntact { damaged.append(entry.record.name) }
            try show(entry)
        }
        var query = self.query
        for (reader, schema) in readers {
            let place = schema.fields.firstIndex { $0.name == query.sortField }
            let isByName = query.sortField == "_name" || query.sortField != nil && query.sortField == schema.nameField
            var (found, count): ([Entry], Int) = ([], 0)
            do {
                try reader.forEachRecord(query, checksDigests: true) { record in
                    let value = isByName ? .string(record.name) : place.flatMap { record.values[$0] }
                    let entry = Entry(scope: reader.scope, schema: schema, record: record, sortValue: value)
                    count += 1
                    if query.sortField == nil { try take(entry) } else { found.append(entry) }
                }
            } catch let error as StoreError where error.code == .sql || error.code == .schema {
                failures.append((reader.scope, error))
                continue
            }
            if query.sortField == nil {
                query.limit = query.limit.map { $0 - count }
            } else {
                waiting = Self.merge(waiting, found, isDescending: query.isDescending)
            }
        }
        if let (_, error) = failures.first, failures.count == readers.count { throw error }
        for (scope, error) in failures {
            Output.error("note: the records of the \(scope.name) store are left out: \(error.message)")
        }
        for entry in waiting.prefix(query.limit ?? .max) { try take(entry) }
        return damaged
    }

    private static func merge(_ first: [Entry], _ second: [Entry], isDescending: Bool) -> [Entry] {
        var (i, j, merged) = (0, 0, [Entry]())
        while i < first.count, j < second.count {
            let (one, other) = (first[i].sortValue, second[j].sortValue)
            if isDescending ? isOrdered(one, before: other) : isOrdered(other, before: one) {
                merged.append(second[j])
                j += 1
            } else {
                merged.append(first[i])
                i += 1
            }
        }
        return merged + first[i...] + second[j...]
    }

    /// Compares values in the order of SQLite: no value, numbers, texts, bytes.
    private static func isOrdered(_ one: FieldValue?, before other: FieldValue?) -> Bool {
        func rank(_ value: FieldValue?) -> Int {
            switch value {
            case nil: 0
            case .int64, .timestamp, .double: 1
            case .bytes: 3
            case .string, .location, .reference, .asset, .list: 2
            }
        }
        func text(_ value: FieldValue?) -> String {
            value.flatMap(StoredText.text) ?? ""
        }
        switch (one, other) {
        case (.int64(let a), .int64(let b)), (.timestamp(let a), .timestamp(let b)): return a < b
        case (.double(let a), .double(let b)): return a < b
        // A field may have one type in the private store and another in the shared one.
        case (.int64(let a), .double(let b)), (.timestamp(let a), .double(let b)): return Double(a) < b
        case (.double(let a), .int64(let b)), (.double(let a), .timestamp(let b)): return a < Double(b)
        case (.int64(let a), .timestamp(let b)), (.timestamp(let a), .int64(let b)): return a < b
        case (.bytes(let a), .bytes(let b)): return a.lexicographicallyPrecedes(b)
        default:
            guard rank(one) == rank(other) else { return rank(one) < rank(other) }
            return text(one).utf8.lexicographicallyPrecedes(text(other).utf8)
        }
    }

    /// - Returns: The names of the damaged records among those shown.
    func printTable() throws -> [String] {
        var table = TextTable(columns: [schema.nameField ?? "_name", "store"] + schema.fields.map(\.name))
        let damaged = try forEach { entry in
            let texts = try RecordText(schema: entry.schema).plain(entry.record, entry.schema)
            let values = Dictionary(zip(entry.schema.fields.map(\.name), texts), uniquingKeysWith: { $1 })
            try table.add(
                [entry.schema.shortName(of: entry.record.name), entry.scope.name] + schema.fields.map { values[$0.name] ?? "" })
        }
        try table.finish()
        return damaged
    }

    /// Prints the records in the form of an export, with the store of each record in `_store`.
    ///
    /// - Returns: The names of the damaged records among those shown.
    func printJSON() throws -> [String] {
        var array = RecordArray()
        let damaged = try forEach { entry in
            try array.add { json in
                try RecordText(schema: entry.schema).write(entry.record, to: &json) { $0.member("_store", entry.scope.name) }
            }
        }
        try array.finish()
        return damaged
    }
}
