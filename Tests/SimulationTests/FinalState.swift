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
}
