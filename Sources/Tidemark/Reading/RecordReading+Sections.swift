import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// A section of a list: records with the same key.
public struct RecordSection<Key: Hashable & Sendable, R: Record>: Sendable {
    /// The key that the records have in common.
    public let key: Key
    /// The records, in the order of the list.
    public let records: [R]
}

extension RecordReading {
    /// Returns the records that match, in sections of records with the same key.
    ///
    /// ```swift
    /// let days = try await journal.sections(Stop.self, by: \.day, sortedBy: [.ascending(\.day), .ascending(\.title)])
    /// let letters = try await journal.sections(Stop.self, by: { $0.title.prefix(1) }, sortedBy: [.ascending(\.title)])
    /// ```
    ///
    /// For a list that shows the headers first, use `counts(_:by:where:)`, which does not fetch the records.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - key: The key of a record: a key path, or a function.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order of the records. The sections are in the order of their first records.
    /// - Throws: As ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: O(n) in the records, which are in memory.
    public func sections<R: Record, Key: Hashable & Sendable>(
        _ type: R.Type, by key: (R) -> Key, where predicate: RecordPredicate<R>? = nil, sortedBy sorts: [RecordSort<R>] = []
    ) async throws -> [RecordSection<Key, R>] {
        var order: [Key] = []
        var records: [Key: [R]] = [:]
        for record in try await fetchAll(type, where: predicate, sortedBy: sorts) {
            let key = key(record)
            if records[key] == nil { order.append(key) }
            records[key, default: []].append(record)
        }
        return order.map { RecordSection(key: $0, records: records[$0] ?? []) }
    }

    /// Returns the records that match, each with the record that it refers to.
    ///
    /// ```swift
    /// for (stop, trip) in try await journal.fetchAll(Stop.self, joining: \.trip, sortedBy: [.ascending(\.day)]) {
    ///     print(stop.title, trip?.title ?? "")
    /// }
    /// ```
    ///
    /// Both records are read in one state of their store. A record refers to records of its own store.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - property: A stored property that is a reference.
    ///   - predicate: The condition; `nil` for all records.
    ///   - sorts: The order; without one, the order of insertion.
    ///   - limit: The maximum number of records; `nil` for all.
    /// - Returns: The records, in order, each with the related record; `nil` if the reference names no record that can be read.
    /// - Throws: As ``fetchAll(_:where:sortedBy:limit:)``.
    /// - Complexity: O(n log m): one query of the type, and one query of the other type for each 5,000 records.
    public func fetchAll<R: Record, Target: Record>(
        _ type: R.Type, joining property: any KeyPath<R, Reference<Target>> & Sendable,
        where predicate: RecordPredicate<R>? = nil,
        sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) async throws -> [(record: R, related: Target?)] {
        try await recordSources.joined(
            type, { $0[keyPath: property].recordName }, where: predicate, sortedBy: sorts, limit: limit)
    }

    /// Returns the records that match, each with the record that it refers to, if it has a reference.
    public func fetchAll<R: Record, Target: Record>(
        _ type: R.Type, joining property: any KeyPath<R, Reference<Target>?> & Sendable,
        where predicate: RecordPredicate<R>? = nil,
        sortedBy sorts: [RecordSort<R>] = [], limit: Int? = nil
    ) async throws -> [(record: R, related: Target?)] {
        try await recordSources.joined(
            type, { $0[keyPath: property]?.recordName }, where: predicate, sortedBy: sorts, limit: limit)
    }
}

extension RecordSources {
    fileprivate func joined<R: Record, Target: Record>(
        _ type: R.Type, _ reference: @escaping @Sendable (R) -> String?, where predicate: RecordPredicate<R>?,
        sortedBy sorts: [RecordSort<R>], limit: Int?
    ) async throws -> [(record: R, related: Target?)] {
        try claims.check(type)
        try claims.check(Target.self)
        var parts: [OrderedPart<(record: R, related: Target?)>] = []
        for source in all {
            let part: OrderedPart<(record: R, related: Target?)> = try await source.read { db in
                let found = try withKnownFields(of: R.recordType) { known in
                    try source.fetchAll(db, type, where: predicate, sortedBy: sorts, limit: limit, known: known) { record, _, _ in
                        record
                    }
                }
                let names = Set(found.elements.compactMap { reference($0)?.canonicalRecordName })
                let targets = try source.records(db, Target.self, named: Array(names))
                let pairs: [(record: R, related: Target?)] = found.elements.map { record in
                    (record, reference(record).flatMap { targets[$0.canonicalRecordName] })
                }
                return OrderedPart(elements: pairs, keys: found.keys, areTexts: found.areTexts, unreadable: found.unreadable)
            }
            UnreadableRecord.log(part.unreadable, as: type)
            parts.append(part)
        }
        return RecordOrder(sorts).merge(parts.filter { !$0.elements.isEmpty }, limit: limit)
    }
}

extension RecordSource {
    /// Returns the records of the given names, by their names in canonical form.
    fileprivate func records<R: Record>(_ db: Database, _ type: R.Type, named names: [String]) throws -> [String: R] {
        var records: [String: R] = [:]
        for start in stride(from: 0, to: names.count, by: 5000) {
            let predicate = RecordPredicate<R>(.isIn(R.nameField, names[start..<min(start + 5000, names.count)]))
            let part = try fetchAll(db, type, where: predicate, sortedBy: [], limit: nil, known: []) { record, _, _ in record }
            UnreadableRecord.log(part.unreadable, as: type)
            for record in part.elements {
                let name = record.recordName.canonicalRecordName
                if records[name] == nil { records[name] = record }
            }
        }
        return records
    }
}
