/// Whatever was put back to an earlier state, a record that nobody has deleted is there, and so is a field that nobody has cleared.
///
/// What the cloud has lost the devices still have: all that was saved counts. What a device has lost the cloud still has: what that had
/// acknowledged counts, unless the cloud has lost it since. Where both were put back, nobody may have it any more.
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
            // A record that is replaced as a whole may lack what only another had.
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
