package import TidemarkCloud
package import TidemarkModel
package import TidemarkStore

/// A field that has one type in a store, and another one in the cloud.
package struct FieldTypeConflict: Hashable, Sendable {
    package let field: String
    /// The type in the store, as ``RecordTypeSchema/Field/typeName``.
    package let here: String
    package let cloud: FieldType
}

extension DeferredRecord {
    /// Returns the fields for which the record was deferred because they have another type in the store, sorted by name.
    ///
    /// An empty list fits into a field of any list.
    ///
    /// - Parameter types: The record types of the store.
    /// - Throws: `CloudError` where the deferred record can't be read.
    package func fieldTypeConflicts(in types: [RecordTypeSchema]) throws(CloudError) -> [FieldTypeConflict] {
        guard reason == .schema, let known = types.first(where: { $0.name == type }) else { return [] }
        return try FieldCoding.decode(whole).sorted { $0.key < $1.key }.compactMap { name, value -> FieldTypeConflict? in
            guard let field = known.field(named: name), field.type != value.type else { return nil }
            if field.type.isList, case .list(let elements, _) = value, elements.isEmpty { return nil }
            return FieldTypeConflict(field: name, here: field.typeName, cloud: value.type)
        }
    }
}
