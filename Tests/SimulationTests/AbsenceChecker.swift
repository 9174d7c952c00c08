/// Checks that a record exists unless it was deleted, and that a field has a value unless it was cleared, even if the cloud or a
/// device was put back to an earlier state.
///
/// If the cloud was put back, devices still have what it has lost, so every saved edit counts. If a device was put back, the
/// cloud still has the edits that it had acknowledged, unless it has lost them since, so acknowledged edits count. If both were
/// put back, an edit may exist nowhere.
struct AbsenceChecker {
    let plan: SimulationPlan
    let history: EditHistory
    let records: [String]

    func check(_ rows: [SimulatedDevice.StoredRow]) -> [String] {
        guard !plan.features.isSuperset(of: SimulationPlan.Feature.later), !plan.features.contains(.accounts) else { return [] }
        let acknowledged = plan.features.contains(.restoredDevice) ? history.acknowledged.subtracting(history.lost) : nil
        return records.flatMap { name -> [String] in
            let events = history.events.filter { $0.record == name }
            guard events.allSatisfy({ $0.fields != nil }) else { return [] }
            let saves = events.filter { acknowledged?.contains($0.id) ?? true }
            guard !saves.isEmpty else { return [] }
            guard let row = rows.first(where: { $0.name == name }) else { return ["\(name) is gone, and nobody has deleted it"] }
            // A policy that replaces the whole record may lose a field that only the other version had.
            guard !["overwrite", "rollback"].contains(plan.resolvingPolicy.name) else { return [] }
            return plan.fields.filter { row.values[$0] == nil }.compactMap { field in
                guard let save = saves.last(where: { $0.fields![field] != nil }),
                    events.allSatisfy({ event in event.fields![field].map { $0 != nil } ?? true })
                else { return nil }
                return "\(name): \(field) has no value, e\(save.id) has saved one, and nobody has cleared it"
            }
        }
    }
}
