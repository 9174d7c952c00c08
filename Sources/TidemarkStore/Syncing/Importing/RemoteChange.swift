package import Foundation
package import TidemarkModel
import TidemarkSQLite

/// A change of a record that comes from the cloud, in the store's terms.
package enum RemoteChange: Sendable {
    case saved(RemoteRecord)
    /// The deletion of a record, or of a share.
    case deleted(name: String)
    case share(Share)
}

extension [RemoteChange] {
    /// The time of the latest edit among the changes, in microseconds since 1970 UTC.
    var latestEdit: Int64? {
        var (latest, last): (Int64?, EditTimes?) = (nil, nil)
        for case .saved(let record) in self {
            // Records that came together were mostly edited at the same time.
            guard let edited = record.edited, edited != last else { continue }
            last = edited
            if let time = edited.latest { latest = Swift.max(latest ?? time, time) }
        }
        return latest
    }
}

/// A record as the cloud has it.
package struct RemoteRecord: Sendable {
    package let name: String
    package let type: String
    package let tag: String
    /// The values that a store can hold.
    package let values: [String: FieldValue]
    /// Whether the record has fields that no store can hold.
    package let isPartial: Bool
    /// Whether the record names assets that are missing.
    package let lacksAssets: Bool
    package let edited: EditTimes?
    /// The whole record as it came, stored if the record is deferred. It is made when it is needed.
    package let whole: @Sendable () -> Data

    package init(
        name: String, type: String, tag: String, values: [String: FieldValue], isPartial: Bool = false, lacksAssets: Bool = false,
        edited: EditTimes?,
        whole: @escaping @Sendable () -> Data
    ) {
        self.name = name
        self.type = type
        self.tag = tag
        self.values = values
        self.isPartial = isPartial
        self.lacksAssets = lacksAssets
        self.edited = edited
        self.whole = whole
    }
}

/// A record from the cloud that could not be applied, or not fully, and waits for a change of the schema or for a person.
public struct DeferredRecord: Hashable, Sendable {
    /// The reason why a record is deferred. The raw values are stored.
    public enum Reason: String, CaseIterable, Sendable {
        /// The store has no such type, or it lacks fields.
        case schema
        /// An asset that it names could not be fetched.
        case asset
        /// A record of another type has the name.
        case name
        /// Both sides changed the record, and the merge policy asks a person.
        case conflict
        /// The record was deleted in the cloud and edited here, and the merge policy asks a person.
        case deletion
        /// The record was deleted in its zone and edited here. It may have moved to another zone: the deletion waits until all zones have
        /// been fetched.
        case move
        /// The record is damaged here, and has edits that the cloud does not have: they can't be merged before it is repaired.
        case damaged
        /// The cloud's copy is damaged. If this device has the record whole, it sends it again.
        case damagedInCloud
    }

    /// The name of the record.
    public let name: String
    /// The name of the record type.
    public let type: String
    /// The number in the store of the record's zone.
    public let zone: Int64
    /// The change tag of the cloud's version; `nil` if the record was deleted.
    public let tag: String?
    /// Why the record could not be applied.
    public let reason: Reason
    /// The record as it came.
    package let whole: Data
}

/// The outcome of applying changes.
package struct ImportOutcome: Sendable {
    package var counts = ChangeCounts()
    package var conflicts: [MergeConflict] = []
    /// Whether there may be new changes to send, or records to look up.
    package var leavesExports = false
    /// Records whose deletion waits until all zones have been fetched once more.
    package var awaitedMoves: Set<String> = []
    package var state = SyncState()
}

/// The way in which records of the cloud have come.
package enum ImportOccasion: Hashable, Sendable {
    /// In a page of changes.
    case page
    /// With the reply to a request.
    case answer
    /// From the deferred records, which are applied again.
    case deferred
    /// By a look-up, because their tags alone do not decide.
    case lookUp
    /// By a person's decision about a conflict.
    case resolved
    /// From the deletions that have waited until all zones were fetched.
    case awaitedDeletion
}

extension RemoteRecord {
    /// Whether a store can hold the name and the values. A cloud may send anything.
    var isStorable: Bool {
        (1...255).contains(name.utf8.count) && name.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
            && values.allSatisfy { _, value in
                switch value {
                case .double(let number): number.isFinite
                case .bytes(let bytes): bytes.count <= RecordBatch.valueLimit
                case .string(let text), .reference(let text), .asset(let text):
                    text.utf8.count <= RecordBatch.valueLimit && !text.hasNUL
                case .list: StoredText.text(value).map { $0.utf8.count <= RecordBatch.valueLimit && !$0.hasNUL } ?? false
                case .int64, .timestamp, .location: true
                }
            }
    }
}
