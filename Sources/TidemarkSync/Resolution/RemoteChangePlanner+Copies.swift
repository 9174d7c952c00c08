import TidemarkModel
package import TidemarkStore

/// Merges copies of a record in two zones. In a private store a name is in one zone at most, so two copies become one record.
extension RemoteChangePlanner {
    package func isHome(_ copy: RemoteChangePlan.ZoneCopy, insteadOf local: RemoteChangePlan.ZoneCopy) -> Bool {
        // The later move counts. If neither was moved, a shared zone counts before the default zone, and otherwise the lesser
        // name.
        if local.moved != copy.moved {
            guard let ours = local.moved else { return true }
            guard let theirs = copy.moved else { return false }
            return theirs > ours
        }
        if copy.isDefaultZone { return false }
        if local.isDefaultZone { return true }
        guard let here = copy.zone, let there = local.zone else { return false }
        return Array(here.utf8).lexicographicallyPrecedes(Array(there.utf8))
    }

    package func merge(
        copy remote: RemoteVersion, into local: LocalRecord, in context: RemoteChangeContext
    ) throws -> RemoteChangePlan.HomeMerge {
        let times = Self.copyTimes(local, remote)
        let ancestor = commonAncestor(
            local.ancestor, of: local, and: remote, times: times, areCopies: true, device: context.device)
        var merged = remote.values
        let conflicts: [MergeConflict]
        do {
            let outcome = try FieldMerge(type: local.type, record: local.name, fields: local.fields).run(
                policy(local.type), ancestor: ancestor, local: local.values, store: remote.values,
                times: { (nil, times[$0].0?.clamped(to: context.time), times[$0].1?.clamped(to: context.time)) })
            for edit in outcome.edits { merged[edit.field] = edit.value }
            conflicts = outcome.conflicts
        } catch is FieldMerge.Unresolved {
            return .unresolved
        }
        let changed = local.fields.indices.filter { !merged[$0].isSame(as: local.values[$0]) }
        var edited = local.stored ?? RowTimes(cloud: EditTimes())
        for field in changed { edited.set(times[field].1, of: local.fields[field]) }
        return .write(changes: changed.map { ($0, merged[$0]) }, edited: edited, conflicts: conflicts)
    }

    /// Returns the times when two copies of a record got the values of their fields: the local copy's time and the cloud's.
    ///
    /// A missing value is an edit only where the field has a time of its own, since a record's insertion gives all fields one
    /// time.
    static func copyTimes(_ local: LocalRecord, _ remote: RemoteVersion) -> [(EditTime?, EditTime?)] {
        local.fields.enumerated().map { index, name in
            (
                local.values[index] == nil ? local.times.fields[name] : local.times[name],
                remote.values[index] == nil ? remote.edited?.fields[name] : remote.edited?[name]
            )
        }
    }

    /// Returns the version that two copies began with, so that only an edit made on this device is in conflict with the edits of
    /// others.
    ///
    /// - A value that has come here from another zone is another device's edit. So is a value that this device wrote earlier and
    ///   that the cloud brings back. The later of two such edits counts.
    /// - A copy may lack edits of the other copy. If only one copy seems to have changed a field, a value that is older than the
    ///   other copy's is no edit, and neither is a missing value that no device has cleared.
    /// - Where no common version is known, the later edit of a field counts. Without times it stays a conflict.
    func commonAncestor(
        _ ancestor: [FieldValue?]?, of local: LocalRecord, and remote: RemoteVersion, times: [(EditTime?, EditTime?)],
        areCopies: Bool, device: String
    ) -> [FieldValue?] {
        let (mine, theirs) = (local.values, remote.values)
        var common = ancestor ?? mine.map { _ in nil }
        for field in mine.indices where !mine[field].isSame(as: theirs[field]) {
            if areCopies, mine[field] == nil && times[field].0 == nil || theirs[field] == nil && times[field].1 == nil {
                common[field] = nil
                continue
            }
            guard let ours = times[field].0, let others = times[field].1, ours != others else { continue }
            let earlier = ours > others ? theirs[field] : mine[field]
            guard let ancestor else {
                common[field] = earlier
                continue
            }
            guard !theirs[field].isSame(as: ancestor[field]) else { continue }
            if mine[field].isSame(as: ancestor[field]) {
                if areCopies, ours > others { common[field] = earlier }
            } else if ours.device != device || others.device == device {
                common[field] = earlier
            }
        }
        return common
    }
}
