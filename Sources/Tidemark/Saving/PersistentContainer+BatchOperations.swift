import GRDB
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Deletions and updates of the records that match, without loading them.
extension PersistentContainer {
    /// Deletes the records that match, without loading them, like `NSBatchDeleteRequest`. ``Record/validateForDelete()`` is not
    /// called.
    ///
    /// - Returns: The names of the deleted records.
    /// - Throws: ``DeletionDenied`` if a delete rule or a permission forbids it; ``PermissionDenied``; ``StoreError``. Both
    ///   stores are checked before anything is deleted, so nothing is deleted after an error. The exception is another process
    ///   that saves between the check and the transactions.
    @discardableResult
    public func deleteAll<R: Record>(_ type: R.Type, where predicate: RecordPredicate<R>? = nil) throws -> [String] {
        try batch(type, predicate) { store, query, author, isDryRun in
            try store.delete(matching: query, author: author, isDryRun: isDryRun)
        }
    }

    /// Sets fields of the records that match, without loading them, like `NSBatchUpdateRequest`. The hooks are not called.
    ///
    /// ```swift
    /// try await journal.updateAll(Destination.self, where: \.rating == nil, set: ["rating": 3])
    /// ```
    ///
    /// In the development environment, a property that no record has had a value for yet becomes a field.
    ///
    /// - Parameters:
    ///   - type: The record type.
    ///   - predicate: The condition; `nil` for all records.
    ///   - values: The new values by field; `nil` removes the value.
    /// - Returns: The names of the records that matched.
    /// - Throws: ``StoreError`` `invalid` for values with which a record could no longer be read as the type, such as `nil` for a
    ///   property that is not optional; `schema` for a field that neither the store nor the type has; `sql`, `diskFull`, `busy`,
    ///   `io`; ``PermissionDenied``.
    @discardableResult
    public func updateAll<R: Record>(
        _ type: R.Type, where predicate: RecordPredicate<R>? = nil, set values: [String: (any Encodable & Sendable)?]
    ) throws -> [String] {
        var stored = try values.mapValues { value in
            try value.flatMap { try RecordEncoder.content(of: $0) }.map { content in
                try content.value { _ in
                    throw StoreError(
                        .invalid, "updateAll can't ingest an asset; save a record with it first and use that record's")
                }
            }
        }
        var optional = Set(stored.keys.filter { PropertyNames.isProperty($0, of: type) })
        // The former names are cleared, too: a field without a value is read under them.
        let formerNames = RecordNaming.of(type).formerNames
        for former in stored.filter({ $0.value == nil }).keys.flatMap({ formerNames[$0] ?? [] }) where stored[former] == nil {
            stored[former] = .some(nil)
            optional.insert(former)
        }
        // A number for a property of type `Double` becomes a double, and a text for a reference becomes a reference.
        let properties = try encodedProperties(of: type, where: predicate, with: stored)
        for (name, property) in properties where stored[name].map({ $0 != nil }) ?? false { stored[name] = property.value }
        let fields = properties.compactMap { name, property -> RecordTypeSchema.Field? in
            guard stored[name].map({ $0 != nil }) ?? false else { return nil }
            return .init(name: name, type: property.value.type, isBoolean: property.isBoolean)
        }
        let (all, mayBeMissing) = (stored, optional)
        let owner = try self.owner(among: all, of: type)
        return try batch(type, predicate) { store, query, author, isDryRun in
            if let owner, owner.isElsewhere[store.scope] == true {
                let names = try store.update(
                    matching: query, set: all, introducing: fields, optional: mayBeMissing, author: author, isDryRun: true)
                if let name = names.first {
                    throw Self.ownerIsElsewhere(RecordName(type: R.recordType, name: name), in: store.scope, owner.record)
                }
            }
            return try store.update(
                matching: query, set: all, introducing: fields, optional: mayBeMissing, author: author, isDryRun: isDryRun)
        }
    }

    /// Returns the record that the new values make the owner of records, and for each store whether the owner is only in the
    /// other one. `nil` if the values set no owner.
    private func owner<R: Record>(
        among values: [String: FieldValue?], of type: R.Type
    ) throws -> (record: RecordName, isElsewhere: [StoreScope: Bool])? {
        guard let owning = try Self.relationships(of: type).first(where: { $0.value.isOwning }),
            case .reference(let name)?? = values[owning.key], try hasRecordsOfOthers
        else { return nil }
        let record = RecordName(type: owning.value.target, name: name)
        let (isPrivate, isShared) = (try contained([record], .private)[0], try contained([record], .shared)[0])
        return (record, [.private: isShared && !isPrivate, .shared: isPrivate && !isShared])
    }

    /// Reads a matching record with the new values, and returns its properties in their stored form. The result is empty when no
    /// matching record can be read now.
    ///
    /// - Throws: ``StoreError`` `invalid` when the record can't be read with the new values.
    private func encodedProperties<R: Record>(
        of type: R.Type, where predicate: RecordPredicate<R>?, with values: [String: FieldValue?]
    ) throws -> [String: (value: FieldValue, isBoolean: Bool)] {
        var properties: [String: (value: FieldValue, isBoolean: Bool)] = [:]
        try recordSources.withKnownFields(of: R.recordType) { known in
            for source in recordSources.all {
                try source.checkPlace()
                let found = try source.database.read { db in
                    try source.container.checkFormat(db, of: source.scope)
                    return try source.versions(db, type, where: predicate, limit: 10, known: known)
                }
                let assets = AssetPlace(folder: source.assets)
                // Skip records that can't be read now: the update may repair them.
                guard
                    let (name, before) = found.first(where: {
                        (try? RecordDecoder<R>.record($0, values: $1, assets: assets)) != nil
                    })
                else { continue }
                var after = before
                for (field, value) in values { after[field] = value }
                do {
                    let record = try RecordDecoder<R>.record(name, values: after, assets: assets)
                    for field in try RecordEncoder().encode(record).fields {
                        guard let value = try field.content?.value({ $0.identifier ?? "" }) else { continue }
                        properties[field.name] = (value, field.isBoolean)
                    }
                } catch DecodingError.valueNotFound(_, let context), DecodingError.dataCorrupted(let context) {
                    throw StoreError(.invalid, "with these values, \(context.debugDescription)")
                } catch {
                    throw StoreError(.invalid, "with these values, \(R.recordType) \(name) can't be read as \(R.self): \(error)")
                }
            }
        }
        return properties
    }

    private func batch<R: Record>(
        _ type: R.Type, _ predicate: RecordPredicate<R>?,
        _ run: @Sendable (isolated RecordStore, RecordQuery, TransactionAuthor, _ isDryRun: Bool) throws -> [String]
    ) throws -> [String] {
        try recordSources.claims.check(type)
        try spreadRelationships()
        // Errors in the query are found before anything is written.
        let queries = try recordSources.withKnownFields(of: R.recordType) { known in
            try recordSources.all.compactMap { source in
                try source.checkPlace()
                let query = try source.database.read { db in
                    try source.container.checkFormat(db, of: source.scope)
                    return try source.query(db, type, where: predicate, known: known)
                }
                return query.map { (scope: source.scope, query: $0) }
            }
        }
        var names: [[String]] = []
        defer { if names.contains(where: { !$0.isEmpty }) { changeBroadcaster.post(isOwn: true) } }
        // Either store may refuse the operation: the shared one by permissions, the private one by delete rules. A dry run finds
        // this out before anything is written.
        let author = TransactionAuthor(author, origin: .save)
        func perform(_ scope: StoreScope, _ query: RecordQuery, isDryRun: Bool) throws -> [String] {
            try stores[scope].assumeIsolated { store in try run(store, query, author, isDryRun) }
        }
        if let last = queries.last, queries.count > 1, try !perform(last.scope, last.query, isDryRun: true).isEmpty {
            for (scope, query) in queries.dropLast() { _ = try perform(scope, query, isDryRun: true) }
        }
        for (scope, query) in queries.reversed() {
            do {
                names.insert(try perform(scope, query, isDryRun: false), at: 0)
            } catch let error as StoreError where names.contains(where: { !$0.isEmpty }) {
                throw StoreError(error.code, "\(error.message). \(names[0].count) records of the shared store are done already")
            }
        }
        return names.flatMap { $0 }
    }
}
