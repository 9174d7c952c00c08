/// The state at the end of a run.
struct FinalState {
    /// A record as the cloud has it.
    struct Remote {
        let name: String
        let type: String
        let tag: String
        /// The times of its fields' edits.
        let edited: String?
        let values: [String: String]
    }

    /// The cloud's records, sorted by name.
    let cloud: [Remote]
    /// The rows of each device, sorted by name.
    let stores: [[SimulatedDevice.StoredRow]]
    /// The records that each device can't send and has reported.
    let excused: [Set<String>]
    /// The field that is not compared, because devices have it with different types.
    let unequalField: String?

    /// Records whose edits have not all reached the cloud.
    var allExcused: Set<String> { excused.reduce(into: []) { $0.formUnion($1) } }
}
