public import TidemarkModel
import TidemarkSQLite

/// What a repair has done with the damaged records of a container.
public struct RepairReport: Sendable, Hashable, Codable {
    /// What a record was repaired from.
    public enum Source: String, Sendable, Codable {
        /// From itself: one bit of a value was flipped, and the digest tells which.
        case digest
        /// From a value that the record had before.
        case history
        /// From the cloud's copy.
        case cloud
        /// Not repaired: a person has accepted it as it is.
        case accepted
    }

    /// A record that is no longer damaged.
    public struct Repaired: Sendable, Hashable, Codable {
        /// The type and the name of the record.
        public let record: RecordName
        /// The store that holds the record.
        public let scope: StoreScope
        /// Where the values come from.
        public let source: Source

        package init(record: RecordName, scope: StoreScope, source: Source) {
            (self.record, self.scope, self.source) = (record, scope, source)
        }
    }

    /// Records that are no longer damaged.
    public var repaired: [Repaired] = []
    /// Records that could not be repaired. Each can be accepted as it is, or deleted.
    public var remaining: [DamagedRecord] = []

    /// An empty report: nothing was repaired, and nothing remains.
    public init() {}

    /// Adds the report of a second repair, which worked on what this one has left.
    package mutating func add(_ later: RepairReport) {
        repaired += later.repaired
        remaining = later.remaining
    }
}
