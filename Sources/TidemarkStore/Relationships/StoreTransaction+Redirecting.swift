import TidemarkModel
import TidemarkSQLite

/// Has references follow records that have become one with another of their unique key.
extension StoreTransaction {
    /// Has references to records that have become one with another name that one. A unique key may contain the reference, so that other
    /// records become one by it: then theirs follow, too.
    ///
    /// - Complexity: A search in each reference field for all of these records together.
    func redirectReferences() throws {
        while true {
            let groups = replacements.takePending()
            guard !groups.isEmpty else { return }
            for group in groups { try redirectReferences(group) }
        }
    }

    /// - Parameter group: The records. In a shared store only references in their zone count.
    func redirectReferences(_ group: RecordReplacements.Group) throws {
        // The owner's devices change what others share, and it comes from the cloud.
        guard !(isFromCloud && connection.scope == .shared) else { return }
        let permissions = try permissions.get()
        let gone = Set(group.names.keys)
        for type in connection.types {
            var changes: [DeletionConsequences.RowID: ReferenceChange] = [:]
            for field in type.fields where field.type.scalar == .reference {
                // A field without a declaration may refer to any type: a name is unique among all of them.
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
