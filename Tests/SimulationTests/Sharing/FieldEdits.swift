/// The values that devices have saved. Each device writes fields of its own, so each field must have its last saved value at the
/// end.
struct FieldEdits {
    struct Edit {
        let device: Int
        let values: [String: String]
    }

    /// By record: the last values of each field.
    private(set) var values: [String: [String: String]] = [:]
    /// The device that writes a field.
    private var writers: [String: Int] = [:]
    /// Records that a device has deleted at some time. A deletion may win over edits.
    private(set) var deleted: Set<String> = []

    mutating func save(_ name: String, _ saved: [String: String], by device: Int) {
        values[name, default: [:]].merge(saved) { $1 }
        for field in saved.keys { writers[field] = device }
    }

    mutating func delete(_ name: String) { deleted.insert(name) }

    /// Returns the saved values that are missing at the end.
    ///
    /// - Parameters:
    ///   - records: The records of the owner's devices, by name.
    ///   - refused: For each device, the records whose saves were refused and are kept.
    func losses(in records: [String: [String: String]], refused: [Set<String>]) -> [String] {
        var losses: [String] = []
        for (name, fields) in values.sorted(by: { $0.key < $1.key }) where !deleted.contains(name) {
            for (field, value) in fields.sorted(by: { $0.key < $1.key }) {
                guard let writer = writers[field], !refused[writer].contains(name) else { continue }
                guard let there = records[name]?[field] else {
                    losses.append("\(name) has lost \(field)=\(value) of d\(writer)")
                    continue
                }
                if there != value { losses.append("\(name) has \(field)=\(there), and d\(writer) saved \(value) last") }
            }
        }
        return losses
    }
}
