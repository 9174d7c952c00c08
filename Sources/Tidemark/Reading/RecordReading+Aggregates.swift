import Foundation
import GRDB
import Logging
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Aggregates, groups and distinct values. SQLite computes them without reading the records into memory.
extension RecordReading {
    /// Computes values of all records that match.
    ///
    /// ```swift
    /// let (nights, longest) = try await journal.aggregate(Stop.self, .sum(\.nights), .maximum(\.nights))
    /// ```
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - aggregates: The aggregates, in order.
    ///   - predicate: The condition; `nil` for all records.
    /// - Returns: The values for both stores together.
    /// - Throws: ``StoreError`` `invalid` for a sum that is too great, or a property that is not a number in the store; the
    ///   errors of ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: O(n) in the records that match; one query of each store.
    public func aggregate<R: Record, each Value: Sendable>(
        _ type: R.Type, _ aggregates: repeat Aggregate<R, each Value>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> (repeat each Value) {
        var terms: [AggregateTerm] = []
        for aggregate in repeat each aggregates { terms.append(try AggregateTerm(aggregate)) }
        let groups = try await recordSources.groups(type, by: nil, terms, where: predicate)
        let group = groups.first ?? AggregateGroup(terms)
        var index = 0
        return try (repeat group.value(of: each aggregates, &index))
    }

    /// Computes values for each group of records that have the same value of a property.
    ///
    /// ```swift
    /// let byTrip = try await journal.aggregates(Stop.self, .count, .sum(\.nights), by: \.trip)
    /// for (trip, (stops, nights)) in byTrip { print(trip, stops, nights) }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - aggregates: The aggregates, in order.
    ///   - property: A stored property. Its values are not lists.
    ///   - predicate: The condition; `nil` for all records.
    /// - Returns: The groups in the order of the property's values. Records whose value is missing or can't be read are in no
    ///   group.
    /// - Throws: As ``aggregate(_:_:where:)``.
    /// - Complexity: O(n log n) in the records that match; one query of each store.
    public func aggregates<R: Record, Group: Hashable & Decodable & Sendable, each Value: Sendable>(
        _ type: R.Type, _ aggregates: repeat Aggregate<R, each Value>, by property: KeyPath<R, Group>,
        where predicate: RecordPredicate<R>? = nil
    ) async throws -> [(group: Group, values: (repeat each Value))] {
        let groups = try await typedGroups(type, Group.self, repeat each aggregates, by: property, where: predicate)
        return groups.compactMap { group in group.group.map { ($0, group.values) } }
    }

    /// Computes values for each group of records that have the same value of an optional property. Records without a value are a
    /// group, too.
    ///
    /// - Returns: The groups in the order of the property's values. The records without a value come first, in the group `nil`.
    public func aggregates<R: Record, Group: Hashable & Decodable & Sendable, each Value: Sendable>(
        _ type: R.Type, _ aggregates: repeat Aggregate<R, each Value>, by property: KeyPath<R, Group?>,
        where predicate: RecordPredicate<R>? = nil
    ) async throws -> [(group: Group?, values: (repeat each Value))] {
        try await typedGroups(type, Group.self, repeat each aggregates, by: property, where: predicate)
    }

    /// Returns the number of records for each value of a property, in one query of each store. A list can show them as headers of
    /// sections.
    ///
    /// ```swift
    /// let sections = try await journal.counts(Stop.self, by: \.day)
    /// let first = sections.first?.value ?? 1
    /// let stops = try await journal.fetchAll(Stop.self, where: \.day == first)
    /// ```
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - property: A stored property. Its values are not lists.
    ///   - predicate: The condition; `nil` for all records.
    /// - Returns: The values in their order. Records without a value are not counted.
    /// - Throws: As ``aggregate(_:_:where:)``.
    /// - Complexity: O(n log n) in the records that match.
    public func counts<R: Record, Value: Hashable & Decodable & Sendable>(
        _ type: R.Type, by property: KeyPath<R, Value>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [(value: Value, count: Int)] {
        try await aggregates(type, .count, by: property, where: predicate).map { ($0.group, $0.values) }
    }

    /// Returns the number of records for each value of an optional property, and the number of records without a value.
    ///
    /// - Returns: The values in their order; the records without a value come first.
    public func counts<R: Record, Value: Hashable & Decodable & Sendable>(
        _ type: R.Type, by property: KeyPath<R, Value?>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [(value: Value?, count: Int)] {
        try await aggregates(type, .count, by: property, where: predicate).map { ($0.group, $0.values) }
    }

    /// Returns the different values that records have of a property.
    ///
    /// ```swift
    /// let countries = try await journal.distinctValues(of: \Stop.country)
    /// ```
    ///
    /// - Parameters:
    ///   - property: A stored property. Its values are not lists.
    ///   - predicate: The condition of the records; `nil` for all records.
    /// - Returns: The values in their order, each once.
    /// - Throws: As ``aggregate(_:_:where:)``.
    /// - Complexity: O(n log n) in the records that match.
    public func distinctValues<R: Record, Value: Hashable & Decodable & Sendable>(
        of property: KeyPath<R, Value>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [Value] {
        try await counts(R.self, by: property, where: predicate).map(\.value)
    }

    /// Returns the different values that records have of an optional property, without `nil`.
    public func distinctValues<R: Record, Value: Hashable & Decodable & Sendable>(
        of property: KeyPath<R, Value?>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [Value] {
        try await counts(R.self, by: property, where: predicate).compactMap(\.value)
    }

    private func typedGroups<R: Record, Group: Hashable & Decodable & Sendable, each Value: Sendable>(
        _ type: R.Type, _ group: Group.Type, _ aggregates: repeat Aggregate<R, each Value>, by property: PartialKeyPath<R>,
        where predicate: RecordPredicate<R>?
    ) async throws -> [(group: Group?, values: (repeat each Value))] {
        var terms: [AggregateTerm] = []
        for aggregate in repeat each aggregates { terms.append(try AggregateTerm(aggregate)) }
        let field = try PropertyNames.name(of: property)
        let groups = try await recordSources.groups(type, by: field, terms, where: predicate)
        var order: [Group?] = []
        var merged: [Group?: AggregateGroup] = [:]
        for group in groups {
            let key: Group?
            do {
                key = try group.key(Group.self)
            } catch {
                Logger(label: "tidemark.records").warning(
                    "left out a group of \(R.recordType) records: '\(field)' can't be read as \(Group.self): \(error)")
                continue
            }
            // Two stored values can be the same value of the type, such as a UUID in upper and in lower case.
            if merged[key] == nil { order.append(key) }
            try merged[key, default: AggregateGroup(terms)].add(group)
        }
        return try order.map { key in
            let group = merged[key] ?? AggregateGroup(terms)
            var index = 0
            return (key, try (repeat group.value(of: each aggregates, &index)))
        }
    }
}

/// An aggregate without its types.
struct AggregateTerm: Sendable {
    let function: AggregateFunction
    let field: String?
    let isDecimal: Bool

    init<R: Record, Value>(_ aggregate: Aggregate<R, Value>) throws(StoreError) {
        function = aggregate.function
        field = try aggregate.field?.get()
        isDecimal = aggregate.isDecimal
    }
}

/// The records of a store, or of both, with one value of a field.
struct AggregateGroup: Sendable {
    fileprivate var key: DatabaseValue = .null
    fileprivate var keyType: FieldType?
    fileprivate var states: [AggregateState]
    fileprivate var types: [FieldType?]

    init(_ terms: [AggregateTerm]) {
        states = terms.map { AggregateState($0.function, isDecimal: $0.isDecimal) }
        types = terms.map { _ in nil }
    }

    mutating func add(_ other: AggregateGroup) throws {
        for index in states.indices {
            try states[index].add(other.states[index])
            types[index] = types[index] ?? other.types[index]
        }
        (key, keyType) = (other.key, other.keyType)
    }

    func key<Key: Decodable>(_ type: Key.Type) throws -> Key? {
        guard !key.isNull, let keyType else { return nil }
        return try FieldDecoder.decode(
            type, StoredField(content: .element(key), type: keyType, assets: AssetPlace(folder: URL(fileURLWithPath: "/"))))
    }

    func value<R: Record, Value>(of aggregate: Aggregate<R, Value>, _ index: inout Int) throws -> Value {
        defer { index += 1 }
        return try aggregate.value(states[index], types[index])
    }
}

extension RecordSources {
    /// Returns the groups of both stores, in the order of the values of the field.
    fileprivate func groups<R: Record>(
        _ type: R.Type, by field: String?, _ terms: [AggregateTerm], where predicate: RecordPredicate<R>?
    ) async throws -> [AggregateGroup] {
        try claims.check(type)
        var groups: [AggregateGroup] = []
        for source in all {
            groups += try await source.read { db in
                try withKnownFields(of: R.recordType) { known in
                    guard let queried = try source.type(db, queriedAs: R.self) else { return [] }
                    return try TypedQuery<R>(queried, predicate?.node, [], limit: nil, known: known).groups(
                        db, by: field, terms, known)
                }
            }
        }
        // Equal values of two stores become one group.
        groups.sort { RecordOrder.compare($0.key, $1.key, nil) < 0 }
        return try groups.reduce(into: []) { merged, group in
            if let last = merged.last, RecordOrder.compare(last.key, group.key, nil) == 0 {
                try merged[merged.count - 1].add(group)
            } else {
                merged.append(group)
            }
        }
    }
}

extension TypedQuery {
    /// Returns the groups of the records that match, by the values of a field. If no field is given, all records are one group.
    fileprivate func groups(
        _ db: Database, by field: String?, _ terms: [AggregateTerm], _ known: Set<String>
    ) throws -> [AggregateGroup] {
        let naming = FieldNaming(R.self)
        let key = try field.map { try column($0, naming, known) }
        if let key, key.type?.isList == true {
            throw StoreError(.invalid, "'\(field ?? "")' is a list; records can't be grouped by it")
        }
        var columns = [key?.sql ?? "NULL"]
        var types: [FieldType?] = []
        for term in terms {
            let column = try term.field.map { try self.column($0, naming, known) }
            if let type = column?.type, term.function != .count {
                let isNumber = term.isDecimal ? type == .string : type == .int64 || type == .double
                let isOrdered = !type.isList && type != .location
                guard term.function == .minimum || term.function == .maximum ? isOrdered : isNumber else {
                    throw StoreError(
                        .invalid, "'\(term.field ?? "")' is of type \(type) in the store, of which that can't be computed")
                }
            }
            columns += term.function.columns(column?.sql, isDecimal: term.isDecimal)
            types.append(column?.type)
        }
        return try rows(
            db, columns, extensions: terms.contains { $0.isDecimal } ? [.order(.decimal), .decimalOrder, .decimalSum] : [],
            grouped: key != nil
        ).map { row in
            var group = AggregateGroup(terms)
            (group.key, group.keyType, group.types) = (row[0] as DatabaseValue, key?.type, types)
            for (index, term) in terms.enumerated() {
                group.states[index] = AggregateState(
                    term.function, isDecimal: term.isDecimal, count: try row.decode(Int.self, atIndex: 1 + 2 * index),
                    value: row[2 + 2 * index] as DatabaseValue)
            }
            return group
        }
    }
}
