import TidemarkModel
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

    private let entries: [Entry]
    /// The fields that either store has, those of the first one first.
    private let schema: RecordTypeSchema

    /// The names of the damaged records among them.
    var damaged: [String] { entries.filter { !$0.record.isIntact }.map(\.record.name) }

    /// - Parameter readers: The stores that have the type.
    /// - Throws: ``StoreError`` where no store can answer the query; a store that lacks one of its fields is left out, with a note.
    init(_ readers: [StoreReader], _ query: RecordQuery) throws {
        var entries: [Entry] = []
        var union: RecordTypeSchema?
        var failures: [(StoreScope, StoreError)] = []
        for reader in readers {
            let schema = try reader.type(named: query.type)
            if union == nil {
                union = schema
            } else {
                for field in schema.fields where union?.field(named: field.name) == nil { union?.fields.append(field) }
            }
            var found: [Entry] = []
            do {
                let place = schema.fields.firstIndex { $0.name == query.sortField }
                let isByName = query.sortField == "_name" || query.sortField != nil && query.sortField == schema.nameField
                try reader.forEachRecord(query, checksDigests: true) { record in
                    let value = isByName ? .string(record.name) : place.flatMap { record.values[$0] }
                    found.append(Entry(scope: reader.scope, schema: schema, record: record, sortValue: value))
                }
            } catch let error as StoreError where error.code == .sql || error.code == .schema {
                failures.append((reader.scope, error))
                continue
            }
            entries = query.sortField == nil ? entries + found : Self.merge(entries, found, isDescending: query.isDescending)
        }
        if let (_, error) = failures.first, failures.count == readers.count { throw error }
        for (scope, error) in failures {
            Output.error("note: the records of the \(scope.name) store are left out: \(error.message)")
        }
        self.entries = query.limit.map { Array(entries.prefix($0)) } ?? entries
        schema = union ?? RecordTypeSchema(name: query.type)
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

    /// The order of SQLite: no value, numbers, texts, bytes.
    private static func isOrdered(_ one: FieldValue?, before other: FieldValue?) -> Bool {
        func rank(_ value: FieldValue?) -> Int {
            switch value {
            case nil: 0
            case .int64, .timestamp, .double: 1
            case .bytes: 3
            default: 2
            }
        }
        func text(_ value: FieldValue?) -> String {
            switch value {
            case .string(let text), .location(let text), .reference(let text), .asset(let text), .list(let text, _): text
            default: ""
            }
        }
        switch (one, other) {
        case (.int64(let a), .int64(let b)), (.timestamp(let a), .timestamp(let b)): return a < b
        case (.double(let a), .double(let b)): return a < b
        case (.bytes(let a), .bytes(let b)): return a.lexicographicallyPrecedes(b)
        default:
            guard rank(one) == rank(other) else { return rank(one) < rank(other) }
            return text(one).utf8.lexicographicallyPrecedes(text(other).utf8)
        }
    }

    func printTable() throws {
        var table = TextTable(columns: [schema.nameField ?? "_name", "store"] + schema.fields.map(\.name))
        for entry in entries {
            let texts = try RecordText(schema: entry.schema).plain(entry.record, entry.schema)
            let values = Dictionary(zip(entry.schema.fields.map(\.name), texts), uniquingKeysWith: { $1 })
            try table.add([entry.schema.shortName(of: entry.record.name), entry.scope.name] + schema.fields.map { values[$0.name] ?? "" })
        }
        try table.finish()
    }

    /// As an export, with the store of each record in `_store`.
    func printJSON() throws {
        var buffer: [UInt8] = [UInt8(ascii: "[")]
        for (index, entry) in entries.enumerated() {
            buffer += index == 0 ? [0x0a] : [UInt8(ascii: ","), 0x0a]
            try RecordText(schema: entry.schema).appendJSON(entry.record, to: &buffer)
            buffer.removeLast()
            buffer += Array(",\"_store\":\"\(entry.scope.name)\"}".utf8)
            if buffer.count > 1 << 18 {
                try Output.write(buffer)
                buffer.removeAll(keepingCapacity: true)
            }
        }
        try Output.write(buffer + [0x0a, UInt8(ascii: "]"), 0x0a])
    }
}
