package import Foundation
package import TidemarkModel
import TidemarkSQLite

/// A change of one record that comes from the cloud, in the store's terms.
package enum RemoteChange: Sendable {
    case saved(RemoteRecord)
    /// Of a record, or a share.
    case deleted(name: String)
    case share(Share)
}

extension [RemoteChange] {
    /// When the last edit of all was made; microseconds since 1970 UTC.
    var latestEdit: Int64? {
        var (latest, last): (Int64?, EditTimes?) = (nil, nil)
        for case .saved(let record) in self {
            // Records that came together were mostly edited together.
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
    /// What of its fields a store can hold.
    package let values: [String: FieldValue]
    /// Whether it has fields that no store can hold.
    package let isPartial: Bool
    /// Whether it names assets that are not there.
    package let lacksAssets: Bool
    package let edited: EditTimes?
    /// The whole record as it came, to be deferred where it can't be applied; made when it is needed.
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

/// A record from the cloud that could not be applied, or not wholly, and waits for a change of the schema or for a person.
public struct DeferredRecord: Hashable, Sendable {
    /// What a deferred record waits for. The raw values are stored.
    public enum Reason: String, CaseIterable, Sendable {
        /// The store has no such type, or it lacks fields.
        case schema
        /// An asset that it names could not be fetched.
        case asset
        /// A record of another type has the name.
        case name
        /// Both sides changed it, and the merge policy is to ask.
        case conflict
        /// It was deleted in the cloud and edited here, and the merge policy is to ask.
        case deletion
        /// The record is damaged here, and has edits that the cloud does not have: they can't be merged before it is repaired.
        case damaged
        /// What the cloud has of it is damaged. If this device has it whole, it sends it again.
        case damagedInCloud
    }

    /// The name of the record.
    public let name: String
    /// The name of the record type.
    public let type: String
    /// The zone that it is in, by its number in the store.
    public let zone: Int64
    /// `nil` where it was deleted.
    public let tag: String?
    /// Why the record could not be applied.
    public let reason: Reason
    /// As it came.
    package let whole: Data
}

/// What applying a page of changes did.
package struct ImportOutcome: Sendable {
    package var counts = ChangeCounts()
    package var conflicts: [MergeConflict] = []
    /// Records that could not be applied, or not wholly.
    package var deferred = 0
    /// Whether something is to be sent, or looked up, that was not, or might not have been before.
    package var leavesExports = false
    package var state = SyncState()
}

/// How records of the cloud have come.
package enum ImportOccasion: Hashable, Sendable {
    /// As the next of all changes.
    case page
    /// With the answer to a request.
    case answer
    /// They were deferred, and are applied again.
    case deferred
    /// They were looked up, because more is to be known of them than their tags.
    case lookUp
    /// A person has resolved a conflict.
    case resolved
}

extension RemoteRecord {
    /// Whether a store can hold the name and the values; what comes from a cloud may be anything.
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
