import TidemarkModel
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

    public struct Repaired: Sendable, Hashable, Codable {
        public let record: RecordName
        public let scope: StoreScope
        public let source: Source

        package init(record: RecordName, scope: StoreScope, source: Source) {
            (self.record, self.scope, self.source) = (record, scope, source)
        }
    }

    public var repaired: [Repaired] = []
    /// Records that could not be repaired. Each can be accepted as it is, or deleted.
    public var remaining: [DamagedRecord] = []

    public init() {}

    /// Adds what was done by another means with what this one has left.
    package mutating func add(_ later: RepairReport) {
        repaired += later.repaired
        remaining = later.remaining
    }
}
