/// What there is at the end of a run.
struct FinalState {
    /// A record as the cloud has it.
    struct Remote {
        let name: String
        let type: String
        let tag: String
        /// When its fields were edited.
        let edited: String?
        let values: [String: String]
    }

    /// By name.
    let cloud: [Remote]
    /// Each device's rows, by name.
    let stores: [[SimulatedDevice.StoredRow]]
    /// Of each device, the records that it can't send, and has said why.
    let excused: [Set<String>]
    /// A field that is not compared: the devices have it with different types.
    let unequalField: String?

    /// Records whose edits have not all reached the cloud.
    var allExcused: Set<String> { excused.reduce(into: []) { $0.formUnion($1) } }
}
