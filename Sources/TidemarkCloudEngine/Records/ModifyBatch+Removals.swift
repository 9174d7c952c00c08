import Foundation
import TidemarkCloud
import TidemarkModel

/// Deletes records with everything that depends on them. ``StoredRemoval`` has what remains to be deleted after the request.
extension ModifyBatch {
    /// Deletes a record, its dependents and theirs. Its children lose their parent, so that they don't become children of a later
    /// record of the same name.
    mutating func delete(
        _ record: StoredCloudRecord, schema: CloudSchema, _ rows: any CloudTransaction
    ) throws(CloudError) {
        let dependents = try records.dependents(of: record.name, limit: max(0, removable), rows)
        guard dependents.unfinished.isEmpty || !access.isLimited else {
            // The remaining dependents would be deleted in the owner's name, and roots of other shares could be among them.
            throw CloudError(
                .limitExceeded,
                "more than \(CloudEngine.removedAtOnce) records go with '\(record.name)' by their references: delete some of these first"
            )
        }
        let gone = [record] + dependents.found
        var roots: [StoredShare] = []
        if hierarchies != nil {
            for record in gone {
                guard let share = try hierarchies!.rooted(record.name, rows) else { continue }
                try access.demand(.delete, share: access.isLimited ? access.parts[0].share.id : nil, isRoot: true)
                roots.append(share)
            }
        }
        removable -= dependents.found.count
        var areShared = false
        for record in gone where !areShared { areShared = try hierarchies?.share(of: record.name, rows) != nil }
        for record in gone { try clear(record, rows) }
        for name in dependents.unfinished { leave(.dependents, of: name) }
        try orphan(gone.map(\.name), atOnce: areShared, schema: schema, rows)
        ended += roots
    }

    private mutating func clear(_ record: StoredCloudRecord, _ rows: any CloudTransaction) throws(CloudError) {
        var record = record
        change += 1
        record.changed = change
        record.modified = stamp
        record.clear()
        try count(record, rows)
        replaced.insert(record.name)
        try hierarchies?.remove(record, rows)
        records.put(record)
        changed.append(record)
    }

    private mutating func leave(_ kind: StoredRemoval.Kind, of name: String) {
        left.append(StoredRemoval(zone: zone.id, kind: kind, target: name, change: change, user: access.caller.user))
    }

    /// Removes the parent of deleted records' children.
    ///
    /// - Parameter atOnce: Whether all children lose it now. Children that leave a share must disappear from its participants at
    ///   once.
    private mutating func orphan(
        _ names: [String], atOnce: Bool, schema: CloudSchema, _ rows: any CloudTransaction
    ) throws(CloudError) {
        for name in names {
            let most = atOnce ? .max : max(0, removable)
            let children = try records.children(of: [name], limit: atOnce ? .max : most + 1, rows)
            for child in children.prefix(most) {
                guard var orphan = try records.record(child.name, rows), orphan.damage == nil else { continue }
                let before = orphan
                orphan.parent = nil
                orphan.modified = stamp
                orphan.link(to: try FieldCoding.decode(orphan.fields), schema)
                _ = try save(orphan, before, rows)
            }
            removable -= children.count
            if children.count > most { leave(.children, of: name) }
        }
    }

    // Removals that earlier requests have left

    /// Does one step of a removal that an earlier request has left.
    ///
    /// - Returns: Whether nothing is left of it.
    mutating func goOn(with removal: StoredRemoval, _ rows: any CloudTransaction) throws(CloudError) -> Bool {
        let (first, schema) = (change, try rows.schema())
        var isDone = true
        switch removal.kind {
        case .dependents:
            let names = try rows.dependents(
                of: [removal.target], in: zone.id, before: removal.change, limit: removable + 1)
            isDone = names.count <= removable
            for name in names.sorted() {
                guard removable > 0 else {
                    isDone = false
                    break
                }
                guard let record = try records.record(name, rows), !record.isDeleted else { continue }
                removable -= 1
                try delete(record, schema: schema, rows)
            }
        case .children: try orphan([removal.target], atOnce: false, schema: schema, rows)
        case .zone: break
        }
        // The rest of this removal continues under its present row.
        if let place = left.firstIndex(where: { $0.kind == removal.kind && $0.target == removal.target }) {
            left.remove(at: place)
            isDone = false
        }
        if change > first { try write(rows) }
        // A damaged record stays. So a step that changes nothing is the last one.
        return isDone || change == first
    }

    /// Returns a record that exists. A record that an unfinished removal has yet to reach is deleted now.
    mutating func present(
        _ name: String, schema: CloudSchema, _ rows: any CloudTransaction
    ) throws(CloudError) -> StoredCloudRecord? {
        guard let record = try records.record(name, rows), !record.isDeleted || record.damage != nil else { return nil }
        // A damaged row does not say what its record depends on; a step of the removal decides.
        guard record.damage == nil, pending.contains(where: { $0.kind == .dependents && $0.change > record.changed })
        else { return record }
        var gone = record
        gone.link(to: try FieldCoding.decode(record.fields), schema)
        let isGone = pending.contains {
            $0.kind == .dependents && $0.change > record.changed && gone.dependsOn.contains($0.target)
        }
        guard isGone else { return record }
        // A participant is told that the record is missing, and the removal deletes it.
        if !access.isLimited { try delete(record, schema: schema, rows) }
        return nil
    }

    /// Checks that no child of a deleted record is left, since the record is to be made again.
    func checkReleased(_ name: String) throws(CloudError) {
        guard (pending + left).contains(where: { $0.kind == .children && $0.target == name }) else { return }
        throw CloudEngine.removing("record '\(name)'")
    }
}
