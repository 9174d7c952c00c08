package import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// New values for fields of one record, for programs that have no Swift type for it.
package struct FieldEdit: Sendable {
    /// What a field is to hold.
    package enum Value: Hashable, Sendable {
        case value(FieldValue)
        case asset(Asset)
        case assets([Asset])
    }

    package var record: RecordName
    /// The fields that the record type needs.
    package var schema: RecordTypeSchema
    /// By the names of fields; `nil` for no value. Other fields keep theirs.
    package var values: [String: Value?]

    package init(record: RecordName, schema: RecordTypeSchema, values: [String: Value?]) {
        self.record = record
        self.schema = schema
        self.values = values
    }
}

extension PersistentContainer {
    /// Gives fields of a record new values. Makes the record, its type and its fields where they do not exist.
    ///
    /// A new record that belongs to a record of the other store goes there, as with a typed save.
    ///
    /// - Parameters:
    ///   - scope: The store that has the record, or is to have it.
    ///   - share: The share of that store to which the record belongs, or into which a new one goes.
    /// - Throws: ``PermissionDenied``; ``StoreError`` `invalid` for an asset or a value that can't be stored, and for a new record in the
    ///   shared store without a share; `notFound` where the share is unknown; `schema` in production; `diskFull`, `busy`, `io`. Then nothing
    ///   is saved.
    @discardableResult
    package func save(_ edit: FieldEdit, in scope: StoreScope, share: Share? = nil) async throws -> SaveResult {
        var place: SharePlace?
        var scope = scope
        if let share {
            place = try await self.place(of: share)
        } else {
            scope = try homes(of: [(record: edit.record, owner: try owner(in: edit))], default: scope)[0]
        }
        let policy = policies(nil, types: [:])
        return try write { [place, scope] assets in
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

    /// The record that the edit makes the owner of its record, as either store has the relationship; `nil` for no owner.
    private func owner(in edit: FieldEdit) throws -> RecordName? {
        guard try hasRecordsOfOthers else { return nil }
        for scope in ContainerDirectory.scopes {
            let types = try stores[scope].assumeIsolated { try $0.knownTypes() }
            let relationships = types.first { $0.name == edit.record.type }?.relationships.values.compactMap(\.self) ?? []
            guard let owning = relationships.first(where: \.isOwning) else { continue }
            guard case .value(.reference(let name))?? = edit.values[owning.field] else { return nil }
            return RecordName(type: owning.target, name: name)
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
