package import TidemarkCloud
package import TidemarkModel
package import TidemarkSQLite
package import TidemarkStore

/// A field that has one type in a store, and another one in the cloud.
package struct FieldTypeConflict: Hashable, Sendable {
    package let field: String
    /// The type in the store, as ``RecordTypeSchema/Field/typeName``.
    package let here: String
    package let cloud: FieldType
}

extension StoreReader {
    /// Returns the types that fields have in the cloud, by record type and field, as far as deferred records tell. A field is left out whose
    /// values have several types there.
    ///
    /// - Throws: ``StoreError``.
    package func cloudFieldTypes() throws(StoreError) -> [String: [String: FieldType]] {
        let deferred = try deferredRecords().filter { $0.reason == .schema }
        guard !deferred.isEmpty else { return [:] }
        let types = try types()
        var found: [String: [String: Set<FieldType>]] = [:]
        for record in deferred {
            // A record that can't be read tells nothing.
            for conflict in (try? record.fieldTypeConflicts(in: types)) ?? [] {
                found[record.type, default: [:]][conflict.field, default: []].insert(conflict.cloud)
            }
        }
        return found.mapValues { fields in fields.compactMapValues { $0.count == 1 ? $0.first : nil } }
    }

    /// Returns the values that deferred records have of fields which have another type in the store.
    ///
    /// - Throws: ``StoreError``.
    package func cloudFieldValues() throws(StoreError) -> [CloudFieldValue] {
        let deferred = try deferredRecords()
        guard !deferred.isEmpty else { return [] }
        let types = try types()
        var found: [CloudFieldValue] = []
        for record in deferred {
            // Also a record in conflict has the cloud's values. One that can't be read has none.
            guard let known = types.first(where: { $0.name == record.type }),
                let values = try? record.fields()
            else { continue }
            var edited = EditTimes()
            if case .string(let text)? = values[CloudRecord.editedField] { edited = EditTimes(text) }
            for (name, value) in values {
                guard let field = known.field(named: name), field.type != value.type else { continue }
                found.append(
                    CloudFieldValue(
                        type: record.type, field: name, record: record.name, zone: record.zone, fieldType: value.type,
                        edited: edited[name]))
            }
        }
        return found
    }
}

extension DeferredRecord {
    /// Returns the record's fields with values that the store can't hold, because it has no such field, or one of another type.
    /// Sorted by name.
    ///
    /// - Parameter types: The record types of the store.
    /// - Throws: `CloudError` where the deferred record can't be read.
    package func missingFields(
        in types: [RecordTypeSchema]
    ) throws(CloudError) -> [(field: String, here: String?, cloud: FieldType)] {
        guard reason == .schema else { return [] }
        let known = types.first { $0.name == type }
        var missing: [(field: String, here: String?, cloud: FieldType)] = []
        for conflict in try fieldTypeConflicts(in: types) { missing.append((conflict.field, conflict.here, conflict.cloud)) }
        for (name, value) in try fields() where name != CloudRecord.editedField {
            if known?.field(named: name) == nil { missing.append((name, nil, value.type)) }
        }
        return missing.sorted { $0.field < $1.field }
    }

    /// Returns the fields for which the record was deferred because they have another type in the store, sorted by name.
    ///
    /// An empty list fits into a field of any list.
    ///
    /// - Parameter types: The record types of the store.
    /// - Throws: `CloudError` where the deferred record can't be read.
    package func fieldTypeConflicts(in types: [RecordTypeSchema]) throws(CloudError) -> [FieldTypeConflict] {
        guard reason == .schema, let known = types.first(where: { $0.name == type }) else { return [] }
        return try fields().sorted { $0.key < $1.key }.compactMap { name, value -> FieldTypeConflict? in
            guard let field = known.field(named: name), field.type != value.type else { return nil }
            if field.type.isList, case .list(let elements, _) = value, elements.isEmpty { return nil }
            return FieldTypeConflict(field: name, here: field.typeName, cloud: value.type)
        }
    }
}
