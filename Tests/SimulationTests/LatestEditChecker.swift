/// Checks runs with the policy of the latest edit, whose clocks are close: each field has the value that was saved last, whatever
/// the devices knew.
struct LatestEditChecker {
    let plan: SimulationPlan
    let history: EditHistory
    let records: [String]

    func check(_ rows: [SimulatedDevice.StoredRow]) -> [String] {
        guard plan.resolvingPolicy.name == "latestEdit", plan.clocksAreClose, plan.ancestorsAreKnown else { return [] }
        return records.flatMap { name -> [String] in
            let events = history.events.filter { $0.record == name }
            // A deletion removes the times of edits, too.
            guard let row = rows.first(where: { $0.name == name }), events.allSatisfy({ $0.fields != nil }) else { return [] }
            return plan.fields.compactMap { field in
                let writes = events.filter { $0.fields![field] != nil }
                guard let last = writes.max(by: { ($0.time, $0.device) < ($1.time, $1.device) }) else { return nil }
                // A value that was cleared before another device heard of it is unknown to all others.
                guard let value = last.fields![field]!, row.values[field] != value else { return nil }
                return "\(name): \(field) is \(row.values[field] ?? "-"), and e\(last.id) was last and saved \(value)"
            }
        }
    }
}
