/// Checks that an edit is lost only to an edit that knew of it or was made beside it, and that no replaced or deleted edit comes
/// back.
///
/// ``EditHistory`` says which edits an edit knew.
struct LossChecker {
    let plan: SimulationPlan
    let history: EditHistory
    let records: [String]

    func check(_ rows: [SimulatedDevice.StoredRow]) -> [String] {
        records.flatMap { name -> [String] in
            let record = Record(
                events: history.events.filter { $0.record == name }, row: rows.first { $0.name == name }, plan: plan,
                restored: history.restored)
            return record.check().map { "\(name): \($0)" }
        }
    }

    /// A record with all of its edits.
    private struct Record {
        let saves: [EditHistory.Event]
        let deletions: [EditHistory.Event]
        let row: SimulatedDevice.StoredRow?
        let plan: SimulationPlan
        let restored: Set<Int>

        init(events: [EditHistory.Event], row: SimulatedDevice.StoredRow?, plan: SimulationPlan, restored: Set<Int>) {
            self.restored = restored
            saves = events.filter { $0.fields != nil }
            deletions = events.filter { $0.fields == nil }
            (self.row, self.plan) = (row, plan)
        }

        private var editsWinOverDeletions: Bool {
            ["mergeByPropertyObjectTrump", "latestEdit", "overwrite"].contains(plan.resolvingPolicy.name)
        }

        private var isByRecord: Bool { ["overwrite", "rollback"].contains(plan.resolvingPolicy.name) }

        func check() -> [String] {
            // If an older edit may win, the value must at least be one that was saved.
            guard plan.ancestorsAreKnown else { return plan.fields.flatMap { checkIsSaved($0) } }
            guard let row else { return checkAbsence() }
            var failures: [String] = []
            if !saves.contains(where: { save in !deletions.contains { $0.known.contains(save.id) } }) {
                failures.append("it is there, and all that was saved of it was deleted by somebody who knew of it")
            }
            return failures + (isByRecord ? checkWhole(row) : plan.fields.flatMap { check($0, row.values[$0]) })
        }

        private func checkIsSaved(_ field: String) -> [String] {
            guard let value = row?.values[field], !saves.contains(where: { $0.fields![field] == value }) else { return [] }
            return ["\(field) is \(value), which nobody has saved"]
        }

        private func checkAbsence() -> [String] {
            // An edit that changes nothing can't be missed.
            let canCancelOut = !plan.isStamped && saves.contains { $0.fields!.values.contains(nil) }
            return saves.compactMap { save in
                if editsWinOverDeletions {
                    return canCancelOut || deletions.contains { $0.known.contains(save.id) } || isBeaten(save)
                        ? nil : "it is gone, and nobody who deleted it knew of e\(save.id)"
                } else {
                    return deletions.contains { !save.known.contains($0.id) }
                        ? nil : "it is gone, and e\(save.id) was made by somebody who knew of all deletions"
                }
            }
        }

        /// Returns whether others have written all fields of a save beside it. The cloud may never have heard of a save whose
        /// fields were all older.
        private func isBeaten(_ save: EditHistory.Event) -> Bool {
            guard plan.resolvingPolicy.name == "latestEdit" else { return false }
            return save.fields!.keys.allSatisfy { field in
                saves.contains {
                    $0.id != save.id && $0.fields![field] != nil && !save.known.contains($0.id) && $0.time >= save.time
                }
            }
        }

        /// Returns a deletion that knew of a save and has won: all saves beside the deletion knew of that save, too.
        private func isGone(_ save: EditHistory.Event) -> EditHistory.Event? {
            deletions.first { deletion in
                deletion.known.contains(save.id)
                    && saves.allSatisfy { deletion.known.contains($0.id) || $0.known.contains(deletion.id) }
            }
        }

        /// Returns whether a save has replaced another one permanently. That is not so if the record was deleted between the two
        /// or later: an edit beside the deletion may bring the record back as it was.
        private func replaces(_ later: EditHistory.Event, _ save: EditHistory.Event) -> Bool {
            later.known.contains(save.id)
                && !deletions.contains { deletion in
                    deletion.known.contains(later.id)
                        || deletion.known.contains(save.id) && later.known.contains(deletion.id)
                }
        }

        /// Returns whether a write of a field has lost to a later write beside it, and the record was deleted by a device that
        /// knew the later one. That device may never have heard of the write that lost.
        private func isDeletedAsLoser(_ write: EditHistory.Event, among writes: [EditHistory.Event]) -> Bool {
            guard plan.resolvingPolicy.name == "latestEdit" else { return false }
            return writes.contains { rival in
                !rival.known.contains(write.id) && !write.known.contains(rival.id)
                    && (rival.time, rival.device) > (write.time, write.device)
                    && deletions.contains { $0.known.contains(rival.id) }
            }
        }

        /// Checks that a field has a value that was saved and not replaced.
        private func check(_ field: String, _ value: String?) -> [String] {
            let writes = saves.filter { $0.fields![field] != nil }
            guard let value else { return checkEmpty(field, writes) }
            // Several saves may have written the same picture.
            let failures = writes.filter { $0.fields![field] == value }.map { check($0, of: field, value, among: writes) }
            guard let first = failures.first else { return ["\(field) is \(value), which nobody has saved"] }
            return failures.contains([]) ? [] : first
        }

        private func check(
            _ write: EditHistory.Event, of field: String, _ value: String, among writes: [EditHistory.Event]
        ) -> [String] {
            // If clocks are too far apart, a write may lose to an edit that it knew.
            if plan.resolvingPolicy.name == "latestEdit", !plan.clocksAreClose { return [] }
            if restored.contains(write.id) { return [] }
            if let later = writes.first(where: { replaces($0, write) && !isDeletedAsLoser($0, among: writes) }) {
                return ["\(field) is \(value), which e\(later.id) has replaced, knowing of it"]
            }
            if let deletion = isGone(write) { return ["\(field) is \(value), which e\(deletion.id) has deleted, knowing of it"] }
            return []
        }

        private func checkEmpty(_ field: String, _ writes: [EditHistory.Event]) -> [String] {
            let full = writes.filter { $0.fields![field]! != nil }
            let isCleared = writes.contains { write in
                write.fields![field]! == nil && !writes.contains { $0.known.contains(write.id) }
            }
            let isDeleted = deletions.contains { deletion in !full.contains { $0.known.contains(deletion.id) } }
            guard !full.isEmpty, !isCleared, !isDeleted else { return [] }
            return ["\(field) has no value, and nobody has cleared it last; it was \(full.compactMap { $0.fields![field]! })"]
        }

        /// Checks that the record as a whole is the result of one save, which was not replaced.
        private func checkWhole(_ row: SimulatedDevice.StoredRow) -> [String] {
            guard let save = saves.first(where: { $0.state["s"] == row.values["s"] }) else {
                return ["it is \(row.values), which nobody has saved"]
            }
            var failures: [String] = []
            // A quarantined record may be older than a field of the store. The account's value of the field then stays.
            let mayBeYounger = plan.features.contains(.accounts)
            if plan.fields.contains(where: { save.state[$0] != row.values[$0] && !(mayBeYounger && save.state[$0] == nil) }) {
                failures.append("it is \(row.values), and e\(save.id) has saved \(save.state)")
            }
            if restored.contains(save.id) { return failures }
            if let later = saves.first(where: { replaces($0, save) }) {
                failures.append("it is as e\(save.id) has saved it, and e\(later.id) has replaced that, knowing of it")
            }
            if let deletion = isGone(save) {
                failures.append("it is as e\(save.id) has saved it, which e\(deletion.id) has deleted")
            }
            return failures
        }
    }
}
