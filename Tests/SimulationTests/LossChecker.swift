/// No edit is lost but to one that knew of it or was made beside it, and none comes back that somebody has replaced or deleted.
///
/// What an edit knew of, ``EditHistory`` says.
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

    /// One record with all that was done to it.
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
            // What an older edit may have replaced is at least what somebody has saved.
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
            // An edit that leaves everything as it was is none that could be missed.
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

        /// Whether others have written all of its fields beside it: the cloud may never have heard of a save whose fields were all older.
        private func isBeaten(_ save: EditHistory.Event) -> Bool {
            guard plan.resolvingPolicy.name == "latestEdit" else { return false }
            return save.fields!.keys.allSatisfy { field in
                saves.contains {
                    $0.id != save.id && $0.fields![field] != nil && !save.known.contains($0.id) && $0.time >= save.time
                }
            }
        }

        /// A deletion that knew of a save and has had its way: everybody who saved the record beside it knew of it.
        private func isGone(_ save: EditHistory.Event) -> EditHistory.Event? {
            deletions.first { deletion in
                deletion.known.contains(save.id)
                    && saves.allSatisfy { deletion.known.contains($0.id) || $0.known.contains(deletion.id) }
            }
        }

        /// Whether a save has replaced another one for good. It has not where the record was deleted between the two or since: what was
        /// made of it beside that may bring it back as it was.
        private func replaces(_ later: EditHistory.Event, _ save: EditHistory.Event) -> Bool {
            later.known.contains(save.id)
                && !deletions.contains { deletion in
                    deletion.known.contains(later.id)
                        || deletion.known.contains(save.id) && later.known.contains(deletion.id)
                }
        }

        /// Whether a write of a field has lost to a later one beside it, and the record was deleted by somebody who knew of that one. The
        /// device that deleted it may never have heard of the write that lost.
        private func isDeletedAsLoser(_ write: EditHistory.Event, among writes: [EditHistory.Event]) -> Bool {
            guard plan.resolvingPolicy.name == "latestEdit" else { return false }
            return writes.contains { rival in
                !rival.known.contains(write.id) && !write.known.contains(rival.id)
                    && (rival.time, rival.device) > (write.time, write.device)
                    && deletions.contains { $0.known.contains(rival.id) }
            }
        }

        /// One field has a value that nobody has replaced.
        private func check(_ field: String, _ value: String?) -> [String] {
            let writes = saves.filter { $0.fields![field] != nil }
            guard let value else { return checkEmpty(field, writes) }
            // Of pictures several may have saved the same.
            let failures = writes.filter { $0.fields![field] == value }.map { check($0, of: field, value, among: writes) }
            guard let first = failures.first else { return ["\(field) is \(value), which nobody has saved"] }
            return failures.contains([]) ? [] : first
        }

        private func check(
            _ write: EditHistory.Event, of field: String, _ value: String, among writes: [EditHistory.Event]
        ) -> [String] {
            // Whose clock is not believed may lose to what it knew.
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

        /// The record as a whole is what one save has made of it, which nobody has replaced.
        private func checkWhole(_ row: SimulatedDevice.StoredRow) -> [String] {
            guard let save = saves.first(where: { $0.state["s"] == row.values["s"] }) else {
                return ["it is \(row.values), which nobody has saved"]
            }
            var failures: [String] = []
            // What was set aside may be of a time before the store had a field: that stays as the account has it.
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
