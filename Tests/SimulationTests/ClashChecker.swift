import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// Checks runs in which devices have a field with different types. The cloud has the type of the first device. Another device
/// reports the reason for each record that it can't send or can't fully apply, and for no other record.
struct ClashChecker {
    let plan: SimulationPlan
    let schema: CloudSchema

    private func cloudType(_ type: String) -> FieldType? { schema.types[type]?.fields["b"]?.fieldType }

    /// Returns whether a device has the field with another type than the cloud.
    func isOdd(_ device: Int) throws -> Bool {
        Set(plan.records.map(plan.type)).union(["Trip"]).contains { type in
            cloudType(type).map { $0 != plan.type(of: "b", on: device) } ?? false
        }
    }

    /// Returns the records that a device can't send.
    func excused(by device: SimulatedDevice) throws -> Set<String> {
        try isOdd(device.number) ? Set(device.refused().keys) : []
    }

    func check(_ device: SimulatedDevice, _ state: FinalState) throws -> [String] {
        guard try isOdd(device.number) else { return [] }
        let (refused, deferred) = (try device.refused(), try device.deferred())
        var failures: [String] = []
        for (name, entry) in refused.sorted(by: { $0.key < $1.key }) {
            let isTold = entry.code == "invalidArguments" && entry.reason?.contains("'b'") == true || entry.waitsFor != nil
            if !isTold { failures.append("d\(device.number) does not say why \(name) is not sent: \(entry)") }
        }
        for record in state.cloud where record.values["b"] != nil {
            guard cloudType(record.type) != plan.type(of: "b", on: device.number) else { continue }
            if deferred[record.name] != .schema, !state.excused[device.number].contains(record.name) {
                failures.append("d\(device.number) does not say that it lacks something of \(record.name)")
            }
        }
        for (name, reason) in deferred.sorted(by: { $0.key < $1.key }) {
            let isDue = state.cloud.contains { $0.name == name && $0.values["b"] != nil }
            if reason == .schema, !isDue { failures.append("d\(device.number) keeps \(name), and has all of it") }
        }
        return failures
    }
}
