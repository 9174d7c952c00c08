import TidemarkCloud
import TidemarkStore

/// Counts how often in a row the cloud has failed at each record without refusing it.
struct RecordFailures {
    /// By the names of the records.
    private var counts: [String: Int] = [:]
    /// How often the cloud may fail at a record before the record pauses, so that the other records of its requests are sent.
    static let limit = SyncMachine.emptyBatchLimit

    /// Notes that the cloud has accepted a change of a record, or refused it.
    mutating func end(_ record: String) {
        if !counts.isEmpty { counts[record] = nil }
    }

    /// Notes that the cloud has answered with an error for a record.
    ///
    /// - Returns: Whether the record gets a pause.
    mutating func failed(_ record: String, _ code: CloudError.Code) -> Bool {
        switch ErrorReaction(code) {
        // The cloud has refused the record.
        case .park, .ask, .halve, .report: return false
        case .merge, .innocent, .retry, .resend, .uploadAssets, .remakeZone, .wipe, .refetch:
            let count = counts[record, default: 0] + 1
            counts[record] = count > Self.limit ? nil : count
            return count > Self.limit
        }
    }
}
