package import TidemarkModel
package import TidemarkStore

/// Decides the outcome of the cloud's changes, under the merge policies of the types.
///
/// The rules are those of Documentation/Decisions 017, 020, 028 and 031. Every method is pure, so all devices come to the same record.
package struct RemoteChangePlanner: RemoteChangePlanning {
    /// The merge policy of a type.
    private let policies: @Sendable (String) -> MergePolicy

    package init(policy: @escaping @Sendable (String) -> MergePolicy) { policies = policy }

    func policy(_ type: String) -> MergePolicy { policies(type) }

    /// The planner for changes that the cloud has refused permanently: the record becomes the cloud's version, with the edits that were
    /// made since.
    package static let rejected = RemoteChangePlanner { _ in .mergeByPropertyObjectTrump }

    // Records whose row is here

    package func plan(for row: RemoteChangePlan.KnownRow, tag: String, occasion: ImportOccasion) -> RemoteChangePlan.Row {
        if row.comparesAll, row.tag != nil || row.isPending { return .compare }
        switch occasion {
        case .page, .answer: if row.tag == tag, !row.lacksValues { return .skip }
        // The version that was deferred is not the newest any more.
        case .deferred: if row.tag != tag { return .lookUp }
        case .lookUp, .resolved, .awaitedDeletion: break
        }
        return row.isPending ? .merge : .write
    }

    package func blocksName(_ isPending: Bool) -> Bool {
        // A local record without edits was deleted in the cloud before the other record was made there.
        isPending
    }

    package func isUpToDate(_ values: [FieldValue?], tag: String?, isPending: Bool, with remote: RemoteVersion) -> Bool {
        // A row with the same values is written where the cloud has it under another tag.
        !isPending && tag == remote.tag && zip(values, remote.values).allSatisfy { $0.isSame(as: $1) }
    }

    package func merge(
        _ local: LocalRecord, with remote: RemoteVersion, as relation: RemoteChangePlan.Relation, in context: RemoteChangeContext
    ) throws -> RemoteChangePlan.Merge {
        let (policy, isCopy): (MergePolicy, Bool) =
            switch relation {
            case .edit: (self.policy(local.type), false)
            case .copy(isEdited: true): (self.policy(local.type), true)
            // The local copy has only values from the cloud. They are no conflict with a move whose device did not know them.
            case .copy(isEdited: false): (.mergeByPropertyObjectTrump, true)
            }
        var ancestor = local.ancestor
        if isCopy || context.mayMove, let known = ancestor {
            // A record that the cloud does not have in this zone has come from another zone, too.
            ancestor = commonAncestor(
                known, of: local, and: remote, times: Self.copyTimes(local, remote), areCopies: isCopy || local.tag == nil,
                device: context.device)
        }
        // The record was deleted in the cloud and stayed here, and another device has made it again. A field without a value
        // there was not set by that device, so it was not cleared either.
        if local.tag == nil, let known = ancestor {
            for (field, name) in local.fields.enumerated() where remote.values[field] == nil {
                let isEdited = !local.values[field].isSame(as: known[field]) || local.times[name] != local.stored?.cloud(name)
                if isEdited { ancestor?[field] = nil }
            }
        }
        do {
            let outcome = try FieldMerge(type: local.type, record: local.name, fields: local.fields).run(
                policy, ancestor: ancestor, local: local.values, store: remote.values,
                mayBeEdited: { local.isPending[$0] },
                times: { field in
                    let name = local.fields[field]
                    func clamped(_ time: EditTime?) -> EditTime? { time?.clamped(to: context.time) }
                    return (clamped(local.stored?.cloud(name)), clamped(local.times[name]), clamped(remote.edited?[name]))
                })
            // The local times hold for fields that keep their local values.
            var edited = RowTimes(cloud: remote.edited ?? EditTimes())
            for field in outcome.edits.map(\.field) + outcome.renewals {
                edited.set(local.times[local.fields[field]], of: local.fields[field])
            }
            return .write(
                .init(edits: outcome.edits, renewals: outcome.renewals, edited: edited, conflicts: outcome.conflicts))
        } catch let error as FieldMerge.Unresolved {
            return .unresolved(fields: error.fields)
        }
    }

    // Records that were deleted

    package func plan(
        for deletion: RemoteChangePlan.KnownDeletion, tag: String, occasion: ImportOccasion, isMove: () throws -> Bool
    ) rethrows -> RemoteChangePlan.Deleted {
        if isDeleted(deletion.tag, tag: tag, occasion: occasion) { return .keep }
        // The version that was deferred is not the newest any more.
        if occasion == .deferred { return .lookUp }
        // The record was deleted in this zone only because it moved to another one.
        if deletion.mayMove, try isMove() { return .restore }
        // The cloud has a record of another type under the name, and not the record that was deleted.
        return deletion.isOfType ? .merge : .restore
    }

    package func isDeleted(_ deleted: String?, tag: String, occasion: ImportOccasion) -> Bool {
        deleted == tag && occasion != .resolved
    }

    package func deletesAgain(_ edited: EditTimes?, deleted time: Int64) -> Bool {
        guard let edited = edited?.latest else { return false }
        return time > edited
    }

    package func plan(
        forDeleted record: RecordName, fields: [String], ancestor: [FieldValue?]?, edited remote: RemoteVersion
    ) throws -> RemoteChangePlan.Restoration {
        var merge = RecordMerge(
            type: record.type, record: record.name, ancestor: ancestor.map { RecordVersion(Self.byName(fields, $0)) }, local: nil,
            store: RecordVersion(Self.byName(fields, remote.values), times: remote.edited?.times(of: fields) ?? [:]))
        // The record has changed since it was deleted. If no change is visible here, a field that the type can't hold was edited.
        merge.storeHasHiddenEdits = !remote.isWhole
        do {
            let (merged, conflicts) = try merge.run(policy(record.type))
            return merged == nil ? .deleteAgain(conflicts) : .restore(conflicts)
        } catch is RecordMerge.Unresolved {
            return .unresolved
        }
    }

    package func plan(forDeletionOf row: RemoteChangePlan.KnownRow) -> RemoteChangePlan.RemoteDeletion {
        // A new record only has the name of the deleted record. The deletion ends a conflict of the two.
        if row.tag == nil, row.isNew { return .endConflict }
        return row.isPending ? .merge : .delete
    }

    package func plan(forDeletionOf local: LocalRecord) throws -> RemoteChangePlan.EditedDeletion {
        let merge = RecordMerge(
            type: local.type, record: local.name, ancestor: local.ancestor.map { RecordVersion(Self.byName(local.fields, $0)) },
            local: RecordVersion(Self.byName(local.fields, local.values), times: local.times.times(of: local.fields)), store: nil)
        do {
            let (merged, conflicts) = try merge.run(policy(local.type))
            return merged == nil ? .delete(conflicts) : .sendAgain(conflicts)
        } catch is RecordMerge.Unresolved {
            return .unresolved
        }
    }

    package func uniqueKeyPolicy(_ type: String) -> MergePolicy {
        // Records with equal keys are merged whatever the policy says about conflicts: both devices find them, and must do the
        // same.
        if case .error = policy(type) { return .latestEdit }
        return policy(type)
    }

    private static func byName(_ fields: [String], _ values: [FieldValue?]) -> [String: FieldValue] {
        var named: [String: FieldValue] = [:]
        for (field, value) in zip(fields, values) { named[field] = value }
        return named
    }
}
