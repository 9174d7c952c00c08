import Foundation
import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Fetches along references: one query for all references, and not one for each.
///
/// Names that are UUIDs are compared without case. If several zones of a store have records of one name, each of them is
/// included.
extension RecordReading {
    /// Returns the record that a reference names; `nil` when there is none.
    ///
    /// - Throws: ``StoreError``; `DecodingError` when the record can't be read as that type.
    public func fetch<Target: Record>(_ reference: Reference<Target>) async throws -> Target? {
        try await fetch(Target.self, named: reference.recordName)
    }

    /// Returns the records that references name.
    ///
    /// ```swift
    /// let stops = try await journal.fetchAll(Stop.self)
    /// let trips = try await journal.fetchAll(stops.compactMap(\.trip))
    /// let titles = stops.map { stop in stop.trip.flatMap { trips[$0]?.title } ?? "" }
    /// ```
    ///
    /// - Returns: The records by their references, without records that are missing or can't be read. If both stores have a
    ///   record of the name, it is the private store's, as with ``fetch(_:)``.
    /// - Throws: ``StoreError``, as ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: One look-up for each reference, 5,000 in one query.
    public func fetchAll<Target: Record>(
        _ references: some Sequence<Reference<Target>>
    ) async throws -> [Reference<Target>: Target] {
        let wanted = Array(Set(references))
        var found: [String: Target] = [:]
        for start in stride(from: 0, to: wanted.count, by: RecordSources.namesPerQuery) {
            let names = wanted[start..<min(start + RecordSources.namesPerQuery, wanted.count)].map(\.recordName)
            let predicate = RecordPredicate<Target>(.isIn(Target.nameField, names))
            for record in try await fetchAll(Target.self, where: predicate) {
                let name = record.recordName.canonicalRecordName
                if found[name] == nil { found[name] = record }
            }
        }
        return wanted.reduce(into: [:]) { $0[$1] = found[$1.recordName.canonicalRecordName] }
    }

    /// Returns, for each of the given records, the records that refer to it.
    ///
    /// ```swift
    /// let trips = try await journal.fetchAll(Trip.self)
    /// let stops = try await journal.fetchAll(Stop.self, referringTo: trips, by: \.trip, sortedBy: [.ascending(\.day)])
    /// for trip in trips { show(trip, with: stops[Reference(trip)] ?? []) }
    /// ```
    ///
    /// - Parameters:
    ///   - type: The record type that has the references.
    ///   - targets: The records that are referred to.
    ///   - property: A stored property that is a reference, or a list of references.
    ///   - predicate: The condition of the records; `nil` for all that refer to one of the targets.
    ///   - sorts: The order of each list.
    /// - Returns: A list for each target, which may be empty. With a list of references, a record is in several lists.
    /// - Throws: ``StoreError``, as ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: O(n log m) in the records returned and those of the type. For a list of references, O(m).
    public func fetchAll<R: Record, Value: ReferenceValue>(
        _ type: R.Type, referringTo targets: some Sequence<Value.Target>, by property: KeyPath<R, Value>,
        where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = []
    ) async throws -> [Reference<Value.Target>: [R]] {
        let field = try PropertyNames.name(of: property)
        return try await lists(field, targets.map(Reference.init), predicate, sorts) { $0[keyPath: property].references }
    }

    /// Returns the records that refer to a record.
    ///
    /// - Parameters:
    ///   - relationship: The inverse of a property.
    ///   - target: The record that is referred to.
    ///   - predicate: The condition of the records; `nil` for all.
    /// - Returns: The records in the order of the relationship.
    /// - Throws: ``StoreError``, as ``fetchAll(_:where:sortedBy:limit:)``.
    public func fetchAll<Target: Record, R: Record>(
        _ relationship: ToMany<Target, R>, of target: Target, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [R] {
        try await fetchAll(relationship, of: CollectionOfOne(target), where: predicate)[Reference(target)] ?? []
    }

    /// Returns, for each of the given records, the records that refer to it. It makes one query of each store.
    ///
    /// - Parameters:
    ///   - relationship: The inverse of a property.
    ///   - targets: The records that are referred to.
    ///   - predicate: The condition of the records; `nil` for all.
    /// - Returns: A list for each target, in the order of the relationship; it may be empty.
    /// - Throws: ``StoreError``, as ``fetchAll(_:where:sortedBy:limit:)``.
    public func fetchAll<Target: Record, R: Record>(
        _ relationship: ToMany<Target, R>, of targets: some Sequence<Target>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [Reference<Target>: [R]] {
        try await lists(
            try relationship.field.get(), targets.map(Reference.init), predicate, relationship.sorts, relationship.references)
    }

    private func lists<R: Record, Target: Record>(
        _ field: String, _ targets: [Reference<Target>], _ predicate: RecordPredicate<R>?, _ sorts: [RecordSort<R>],
        _ references: (R) -> [Reference<Target>]
    ) async throws -> [Reference<Target>: [R]] {
        var lists: [Reference<Target>: [R]] = [:]
        for target in targets { lists[target] = [] }
        let condition = Self.condition(lists.keys, field, predicate)
        let targets = Self.byName(lists.keys)
        for record in try await fetchAll(R.self, where: condition, sortedBy: sorts) {
            for name in Set(references(record).map(\.recordName.canonicalRecordName)) {
                for target in targets[name] ?? [] { lists[target]?.append(record) }
            }
        }
        return lists
    }

    /// Returns, for each of the given records, the number of records that refer to it.
    ///
    /// ```swift
    /// let counts = try await journal.counts(Photo.self, referringTo: stops, by: \.stop)
    /// let badge = counts[Reference(stop)] ?? 0
    /// ```
    ///
    /// - Parameters:
    ///   - type: The record type that has the references.
    ///   - targets: The records that are referred to.
    ///   - property: A stored property that is a reference, or a list of references.
    ///   - predicate: The condition of the records that are counted; `nil` for all.
    /// - Returns: A number for each target, which may be 0; the sum over both stores.
    /// - Throws: ``StoreError``, as ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: One query of each store: O(n log m) in the records counted and those of the type. For a list of references, O(m).
    public func counts<R: Record, Value: ReferenceValue>(
        _ type: R.Type, referringTo targets: some Sequence<Value.Target>, by property: KeyPath<R, Value>,
        where predicate: RecordPredicate<R>? = nil
    ) async throws -> [Reference<Value.Target>: Int] {
        try await counts(try PropertyNames.name(of: property), targets.map(Reference.init), predicate)
    }

    /// Returns, for each of the given records, the number of records that refer to it.
    ///
    /// - Parameters:
    ///   - relationship: The inverse of a property.
    ///   - targets: The records that are referred to.
    ///   - predicate: The condition of the records that are counted; `nil` for all.
    /// - Returns: A number for each target, which may be 0; the sum over both stores.
    /// - Throws: ``StoreError``, as ``fetchAll(_:where:sortedBy:limit:)``.
    public func counts<Target: Record, R: Record>(
        _ relationship: ToMany<Target, R>, of targets: some Sequence<Target>, where predicate: RecordPredicate<R>? = nil
    ) async throws -> [Reference<Target>: Int] {
        try await counts(try relationship.field.get(), targets.map(Reference.init), predicate)
    }

    private func counts<R: Record, Target: Record>(
        _ field: String, _ targets: [Reference<Target>], _ predicate: RecordPredicate<R>?
    ) async throws -> [Reference<Target>: Int] {
        var counts: [Reference<Target>: Int] = [:]
        for target in targets { counts[target] = 0 }
        let (sources, type) = (recordSources, R.self)
        let byName = Self.byName(counts.keys)
        try sources.claims.check(type)
        let condition = Self.condition(counts.keys, field, predicate)
        for source in sources.all {
            let found = try await source.read { db in
                try sources.withKnownFields(of: R.recordType) { known in
                    try source.counts(db, type, by: field, where: condition, known: known)
                }
            }
            for (name, count) in found {
                for target in byName[name.canonicalRecordName] ?? [] { counts[target]? += count }
            }
        }
        return counts
    }

    /// Returns references by the names that are compared.
    private static func byName<Target>(_ references: some Sequence<Reference<Target>>) -> [String: [Reference<Target>]] {
        Dictionary(grouping: references, by: \.recordName.canonicalRecordName)
    }

    /// Returns the condition that a record refers to one of the targets, and matches.
    private static func condition<R: Record, Target: Record>(
        _ targets: some Sequence<Reference<Target>>, _ field: String, _ predicate: RecordPredicate<R>?
    ) -> RecordPredicate<R> {
        let refers = RecordPredicate<R>(.refers(field, to: targets.map(\.recordName)))
        return predicate.map { refers && $0 } ?? refers
    }
}

extension RecordSources {
    /// The most names in one query, since SQLite limits the parameters of a statement.
    fileprivate static let namesPerQuery = 5000
}

extension RecordSource {
    /// Returns, for each record that matching records refer to, the number of these records.
    fileprivate func counts<R: Record>(
        _ db: Database, _ type: R.Type, by field: String, where predicate: RecordPredicate<R>, known: Set<String>
    ) throws -> [(name: String, count: Int)] {
        guard let queried = try self.type(db, queriedAs: R.self) else { return [] }
        return try TypedQuery<R>(queried, predicate.node, [], limit: nil, known: known).counts(
            db, by: queried.column(field, FieldNaming(type), known: known))
    }
}
