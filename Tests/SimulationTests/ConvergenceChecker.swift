/// Checks that all stores and the cloud have the same records, each once.
struct ConvergenceChecker {
    func check(_ state: FinalState) -> [String] {
        var failures: [String] = []
        func compared(_ values: [String: String]) -> [String: String] { values.filter { $0.key != state.unequalField } }
        let cloud = state.cloud.map { Record(name: $0.name, type: $0.type, values: compared($0.values)) }
        for (device, rows) in state.stores.enumerated() {
            let expected = cloud.filter { !state.excused[device].contains($0.name) }
            let found = rows.filter { !state.excused[device].contains($0.name) }
                .map { Record(name: $0.name, type: $0.type, values: compared($0.values)) }
            for record in found where !expected.contains(record) {
                failures.append("d\(device) has \(record), and the cloud has not")
            }
            for record in expected where !found.contains(record) {
                failures.append("the cloud has \(record), and d\(device) has not")
            }
            let names = found.map(\.name)
            if Set(names).count < names.count { failures.append("d\(device) has a record twice: \(names)") }
        }
        return failures
    }

    private struct Record: Equatable, CustomStringConvertible {
        let name: String
        let type: String
        let values: [String: String]

        var description: String { "\(type) \(name) \(values.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" })" }
    }
}
