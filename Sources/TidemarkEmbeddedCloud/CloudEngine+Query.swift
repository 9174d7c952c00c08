import Foundation
import TidemarkCloud
import TidemarkModel

extension CloudEngine {
    /// Records that a query finds; see `CloudDatabase`.
    func query(
        _ query: CloudQuery, in id: CloudZoneID, limit: Int?, keys: Set<String>?, continuation: QueryContinuation?,
        _ caller: Caller
    ) async throws(CloudError) -> QueryAnswer {
        let most = max(1, min(limit ?? .max, limits.recordsPerAnswer))
        return try await storage.read { rows throws(CloudError) in
            let schema = try rows.schema()
            guard let zone = try existing(id, caller, rows) else { return QueryAnswer(records: [], continuation: nil) }
            guard let type = schema.types[query.recordType] else {
                guard schema.isFixed else { return QueryAnswer(records: [], continuation: nil) }
                throw CloudError(.unknownItem, "there is no record type '\(query.recordType)'")
            }
            var indexed = try type.translate(query)
            if let continuation { indexed.after = try QueryPlace(continuation, of: query).after }
            let found = try rows.find(indexed, in: zone.id, limit: most + 1)
            let zoneID = self.id(of: zone, caller)
            var (records, bytes): ([CloudRecord], Int) = ([], 0)
            for (stored, _) in found.prefix(most) {
                guard records.isEmpty || bytes + stored.fields.count <= limits.bytesPerRequest else { break }
                bytes += stored.fields.count
                records.append(try record(stored, in: zoneID, keys: keys))
            }
            let hasMore = records.count < found.count
            let last = found[..<records.count].last
            return QueryAnswer(
                records: records,
                continuation: hasMore
                    ? last.map { QueryPlace(values: $0.keys, name: $0.record.name, of: query).continuation } : nil)
        }
    }

    /// Says which indexes a field has; `recordName` makes the type as such queryable. What is there is found anew.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a field that is not there or that can't have such an index.
    func setIndexes(_ indexes: Set<CloudSchema.Index>, of field: String, in typeName: String) async throws(CloudError) {
        try await storage.write { rows throws(CloudError) in
            var schema = try rows.schema()
            guard var type = schema.types[typeName] else {
                throw CloudError(.unknownItem, "there is no record type '\(typeName)'")
            }
            if field == "recordName" {
                type.isQueryable = indexes.contains(.queryable)
                schema.types[typeName] = type
                return try rows.save(schema)
            }
            guard var known = type.fields[field], let fieldType = known.fieldType else {
                throw CloudError(.invalidArguments, "'\(typeName)' has no field '\(field)'")
            }
            for index in indexes {
                guard index.suits(fieldType) else {
                    throw CloudError(.invalidArguments, "a \(fieldType) can't be \(index.rawValue)")
                }
            }
            for index in CloudSchema.Index.allCases {
                guard indexes.contains(index) else {
                    known.indexes[index] = nil
                    continue
                }
                if known.indexes[index] == nil {
                    known.indexes[index] = schema.nextIndex
                    schema.nextIndex += 1
                }
            }
            type.fields[field] = known
            schema.types[typeName] = type
            try rows.save(schema)
            try rows.reindex(typeName) { data throws(CloudError) in schema.indexed(try FieldCoding.decode(data), type: typeName) }
        }
    }

    /// Makes this schema that of another environment, where it is fixed: what is there may not go.
    func deploy(_ schema: CloudSchema) async throws(CloudError) {
        try await storage.write { rows throws(CloudError) in
            var deployed = try rows.schema()
            deployed.isFixed = true
            for (name, type) in schema.types {
                var there = deployed.types[name] ?? CloudSchema.RecordType()
                there.isQueryable = type.isQueryable
                for (field, wanted) in type.fields {
                    if let known = there.fields[field], known.type != wanted.type {
                        throw CloudError(
                            .invalidArguments,
                            "'\(field)' of '\(name)' is \(known.type) in production and can't become \(wanted.type)")
                    }
                    var merged = there.fields[field] ?? CloudSchema.Field(type: wanted.type)
                    merged.indexes = [:]
                    for index in CloudSchema.Index.allCases where wanted.indexes[index] != nil {
                        merged.indexes[index] = there.fields[field]?.indexes[index] ?? deployed.nextIndex
                        if merged.indexes[index] == deployed.nextIndex { deployed.nextIndex += 1 }
                    }
                    there.fields[field] = merged
                }
                deployed.types[name] = there
            }
            try rows.save(deployed)
            for name in schema.types.keys {
                try rows.reindex(name) { data throws(CloudError) in deployed.indexed(try FieldCoding.decode(data), type: name) }
            }
        }
    }

    func schema() async throws(CloudError) -> CloudSchema {
        try await storage.read { rows throws(CloudError) in try rows.schema() }
    }
}

extension CloudSchema.Index {
    fileprivate func suits(_ type: FieldType) -> Bool {
        switch self {
        case .queryable: type.scalar != .bytes && type.scalar != .asset
        case .sortable: !type.isList && type.scalar != .bytes && type.scalar != .asset
        case .searchable: type.scalar == .string
        }
    }
}

extension CloudSchema {
    /// Under what a record is found.
    func indexed(_ fields: [String: CloudValue], type: String) -> [Int64: [IndexValue]] {
        guard let known = types[type] else { return [:] }
        var indexed: [Int64: [IndexValue]] = [:]
        for (name, field) in known.fields where !field.indexes.isEmpty {
            guard let value = fields[name] else { continue }
            let values = value.scalars.compactMap(\.indexValue)
            if let index = field.indexes[.queryable] { indexed[index] = values }
            if let index = field.indexes[.sortable] { indexed[index] = Array(values.prefix(1)) }
            if let index = field.indexes[.searchable] {
                let tokens = value.scalars.flatMap { scalar -> [String] in
                    if case .string(let text) = scalar { return Self.tokens(text) }
                    return []
                }
                indexed[index] = Set(tokens).sorted().map { .text($0) }
            }
        }
        return indexed
    }

    /// The words of a text, as they are compared.
    static func tokens(_ text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }
}

extension CloudValue {
    var indexValue: IndexValue? {
        switch self {
        case .string(let text): .text(text)
        case .int64(let number), .timestamp(let number): .integer(number)
        case .double(let number): .real(number)
        case .location(let place): .text("\(place.latitude) \(place.longitude)")
        case .reference(let reference): .text(reference.recordName)
        case .bytes, .asset, .list: nil
        }
    }
}

extension CloudSchema.RecordType {
    /// The query in terms of indexes.
    ///
    /// - Throws: `CloudError` `invalidArguments` for what is not queryable, and for a value that can't be compared so.
    func translate(_ query: CloudQuery) throws(CloudError) -> IndexQuery {
        guard isQueryable || !query.filters.isEmpty else {
            throw CloudError(.invalidArguments, "Queried type is not marked indexable")
        }
        var conditions: [IndexQuery.Condition] = []
        for filter in query.filters { conditions += try self.conditions(filter) }
        var order: [IndexQuery.Order] = []
        for sort in query.sorts {
            let key = try key(sort.key, .sortable)
            order.append(.init(key: key, isAscending: sort.isAscending, from: sort.relativeLocation))
        }
        return IndexQuery(type: query.recordType, conditions: conditions, order: order, after: nil)
    }

    private func key(_ key: CloudQuery.Key, _ index: CloudSchema.Index) throws(CloudError) -> IndexQuery.Key {
        switch key {
        case .recordName: return .recordName
        case .created: return .created
        case .createdBy: return .createdBy
        case .modified: return .modified
        case .modifiedBy: return .modifiedBy
        case .parent: return .parent
        case .field(let name):
            guard let number = fields[name]?.indexes[index] else {
                throw CloudError(.invalidArguments, "Field '\(name)' is not marked \(index.rawValue)")
            }
            return .index(number)
        }
    }

    private func conditions(_ filter: CloudQuery.Filter) throws(CloudError) -> [IndexQuery.Condition] {
        let isSearch = filter.comparator == .containsAllTokens || filter.comparator == .containsAnyTokens
        let key = try key(filter.key, isSearch ? .searchable : .queryable)
        func single() throws(CloudError) -> IndexValue {
            guard let value = filter.value.indexValue else {
                throw CloudError(
                    .invalidArguments, "\(filter.comparator.rawValue) compares with one value, not with a \(filter.value.type)")
            }
            return value
        }
        func several() throws(CloudError) -> [IndexValue] {
            guard case .list(let elements, _) = filter.value else {
                throw CloudError(
                    .invalidArguments, "\(filter.comparator.rawValue) compares with a list, not with a \(filter.value.type)")
            }
            return elements.compactMap(\.indexValue)
        }
        func text() throws(CloudError) -> String {
            guard case .string(let text) = filter.value else {
                throw CloudError(
                    .invalidArguments, "\(filter.comparator.rawValue) compares with a string, not with a \(filter.value.type)")
            }
            return text
        }
        switch filter.comparator {
        case .equals, .listContains: return [.compare(key, .equal, try single())]
        case .notEquals, .listDoesNotContain: return [.not(.compare(key, .equal, try single()))]
        case .lessThan: return [.compare(key, .less, try single())]
        case .lessThanOrEquals: return [.compare(key, .lessOrEqual, try single())]
        case .greaterThan: return [.compare(key, .greater, try single())]
        case .greaterThanOrEquals: return [.compare(key, .greaterOrEqual, try single())]
        case .isIn, .listContainsAny: return [.isOneOf(key, try several())]
        case .isNotIn, .listContainsNone: return [.not(.isOneOf(key, try several()))]
        case .listContainsAll: return try several().map { .compare(key, .equal, $0) }
        case .listDoesNotContainAll:
            // Lacks one of them.
            let all = try several()
            return [.not(.all(all.map { .compare(key, .equal, $0) }))]
        case .beginsWith, .listMemberBeginsWith: return [.beginsWith(key, try text())]
        case .doesNotBeginWith, .noListMemberBeginsWith: return [.not(.beginsWith(key, try text()))]
        case .containsAllTokens: return CloudSchema.tokens(try text()).map { .compare(key, .equal, .text($0)) }
        case .containsAnyTokens: return [.isOneOf(key, CloudSchema.tokens(try text()).map { .text($0) })]
        case .near:
            guard case .location(let place) = filter.value, let metres = filter.distance, metres >= 0 else {
                throw CloudError(.invalidArguments, "NEAR compares with a location, within a distance in metres")
            }
            return [.near(key, latitude: place.latitude, longitude: place.longitude, metres: metres)]
        }
    }
}

/// Where an answer ended.
private struct QueryPlace {
    let values: [IndexValue?]
    let name: String
    private let mark: Int

    var after: (values: [IndexValue?], name: String) { (values, name) }

    init(values: [IndexValue?], name: String, of query: CloudQuery) {
        self.values = values
        self.name = name
        mark = query.sorts.count
    }

    private struct Coded: Codable {
        var integers: [Int64?] = []
        var reals: [Double?] = []
        var texts: [String?] = []
        var name: String
    }

    init(_ continuation: QueryContinuation, of query: CloudQuery) throws(CloudError) {
        mark = query.sorts.count
        guard let data = Data(base64Encoded: continuation.rawValue),
            let coded = try? JSONDecoder().decode(Coded.self, from: data),
            [coded.integers.count, coded.reals.count, coded.texts.count].allSatisfy({ $0 == query.sorts.count })
        else { throw CloudError(.invalidArguments, "the continuation is not of this query") }
        name = coded.name
        values = query.sorts.indices.map { place in
            coded.integers[place].map { .integer($0) } ?? coded.reals[place].map { .real($0) }
                ?? coded.texts[place].map { .text($0) }
        }
    }

    var continuation: QueryContinuation {
        var coded = Coded(name: name)
        for value in values {
            var (integer, real, text): (Int64?, Double?, String?)
            switch value {
            case .integer(let number): integer = number
            case .real(let number): real = number
            case .text(let string): text = string
            case .bytes, nil: break
            }
            coded.integers.append(integer)
            coded.reals.append(real)
            coded.texts.append(text)
        }
        // Plain values.
        return QueryContinuation(rawValue: try! JSONEncoder().encode(coded).base64EncodedString())
    }
}
