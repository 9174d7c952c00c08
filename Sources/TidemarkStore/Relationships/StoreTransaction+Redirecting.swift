import TidemarkModel
import TidemarkSQLite

/// Redirects references to records that were merged with another of their unique key.
extension StoreTransaction {
    /// Redirects references to merged records. A unique key may contain such a reference, so other records may be merged because
    /// of it. Then references to these are redirected, too.
    ///
    /// - Complexity: A search in each reference field for all of these records together.
    func redirectReferences() throws {
        while true {
            let groups = replacements.takePending()
            guard !groups.isEmpty else { return }
            for group in groups { try redirectReferences(group) }
        }
    }

    /// - Parameter group: The merged records. In a shared store only references in their zone count.
    func redirectReferences(_ group: RecordReplacements.Group) throws {
        // The owner's devices change shared records, and the changes come from the cloud.
        guard !(isFromCloud && connection.scope == .shared) else { return }
        let permissions = try permissions.get()
        let gone = Set(group.names.keys)
        for type in connection.types {
            var changes: [DeletionConsequences.RowID: ReferenceChange] = [:]
            for field in type.fields where field.type.scalar == .reference {
                // A field without a declared relationship may refer to any type: names are unique among all types.
                if let declared = type.relationships.first(where: { $0.field == field }), declared.target != group.type {
                    continue
                }
                let search = ReferrerSearch(db: db)
                let rows = try search.rows(
                    of: type, by: field, to: gone, inZone: connection.scope == .shared ? group.zone : nil)
                for row in rows {
                    if let permissions, !permissions.decide(.update, record: row.name, zone: row.zone).isAllowed { continue }
                    let value = row.value.replacingReferences { name in
                        group.names[RecordName.canonical(name)] ?? name
                    }
                    let id = DeletionConsequences.RowID(type: type.id, row: row.row)
                    let others = changes[id]?.values ?? []
                    changes[id] = ReferenceChange(
                        type: type, name: row.name, zone: row.zone, values: others + [(field.ordinal, value)])
                }
            }
            try change(changes.sorted { $0.key.row < $1.key.row }.map(\.value), uniquePolicy: .mergeByPropertyObjectTrump)
        }
    }
}
