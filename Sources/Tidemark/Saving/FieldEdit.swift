package import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// New values for fields of one record, for programs that have no Swift type for it.
package struct FieldEdit: Sendable {
    /// The new value of a field.
    package enum Value: Hashable, Sendable {
        case value(FieldValue)
        case asset(Asset)
        case assets([Asset])
    }

    package var record: RecordName
    /// The fields that the record type needs.
    package var schema: RecordTypeSchema
    /// The new values by the names of fields; `nil` for no value. Other fields keep their values.
    package var values: [String: Value?]

    package init(record: RecordName, schema: RecordTypeSchema, values: [String: Value?]) {
        self.record = record
        self.schema = schema
        self.values = values
    }
}

extension PersistentContainer {
    /// Gives fields of a record new values. If the record, its type or its fields do not exist, they are created.
    ///
    /// A new record that belongs to a record of the other store goes there, as with a typed save.
    ///
    /// - Parameters:
    ///   - edit: The record and the new values.
    ///   - scope: The store that has the record, or gets a new one.
    ///   - share: The share of that store to which the record belongs, or into which a new record goes.
    /// - Throws: ``PermissionDenied``; ``StoreError`` `invalid` for an asset or a value that can't be stored, and for a new
    ///   record in the shared store without a share; `notFound` if the share is unknown; `schema` in production; `diskFull`,
    ///   `busy`, `io`. Then nothing is saved.
    @discardableResult
    package func save(_ edit: FieldEdit, in scope: StoreScope, share: Share? = nil) async throws -> SaveResult {
        var (place, scope, edit): (SharePlace?, StoreScope, FieldEdit) = (nil, scope, edit)
        if let share {
            place = try await self.place(of: share)
        } else if let owning = try owningRelationship(of: edit.record.type) {
            var owner: RecordName?
            if case .value(.reference(let name))?? = edit.values[owning.field] {
                owner = RecordName(type: owning.target, name: name)
            }
            if try contained([edit.record], scope)[0] {
                try checkOwners(of: [(record: edit.record, owner: owner)], in: scope)
            } else {
                scope = try homes(of: [(record: edit.record, owner: owner)], default: scope)[0]
            }
            // The store may not have the type yet.
            if edit.schema.field(named: owning.field) != nil { edit.schema.relationships[owning.field] = owning }
        }
        let policy = policies(nil, types: [:])
        return try write { [place, scope, edit] assets in
            var values: [String: FieldValue] = [:]
            for (field, value) in edit.values {
                values[field] = try value.map { try Self.stored($0, field, assets).composingReferences }
            }
            let save = RecordEdit(
                record: edit.record, base: .any, values: values, fields: Set(edit.values.keys), zone: place?.zone)
            return [
                StoreSave(
                    scope: scope, edits: [save], schemas: [edit.schema], policy: policy,
                    validate: { db, source, _ in try place?.check(db, source) })
            ]
        }
    }

    /// The owning relationship of a type, as one of the stores has it. `nil` if the shared store has no records: then all records
    /// are in the private store.
    private func owningRelationship(of type: String) throws -> RelationshipSchema? {
        guard try hasRecordsOfOthers else { return nil }
        for scope in ContainerDirectory.scopes {
            let known = try stores[scope].assumeIsolated { try $0.knownTypes() }.first { $0.name == type }
            if let owning = known?.relationships.values.compactMap(\.self).first(where: \.isOwning) { return owning }
        }
        return nil
    }

    private static func stored(_ value: FieldEdit.Value, _ field: String, _ assets: AssetIngest) throws -> FieldValue {
        do {
            switch value {
            case .value(let value): return value
            case .asset(let asset): return .asset(try assets.identifier(of: asset))
            case .assets(let all):
                return .list(try all.map { .asset(try assets.identifier(of: $0)) }, of: .asset)
            }
        } catch let error as StoreError where error.code == .invalid {
            throw StoreError(.invalid, "\(field): \(error.message)")
        }
    }
}
