package import TidemarkModel
import TidemarkSQLite

/// A change of a record that is to be sent to the cloud.
package struct ExportItem: Hashable, Sendable {
    /// The key of the change, as the outbox and the sync issues have it.
    package struct Key: Hashable, Sendable {
        package let typeID: Int64
        package let row: Int64
        package let kind: ExportKind
    }

    package let key: Key
    package let type: String
    package let name: String
    /// Of a save, the version of the record that is sent; of a deletion, the number of the change that deleted it.
    package let version: Int64
    /// The change tag of the cloud's record; `nil` if the cloud is not known to have it.
    package let tag: String?
    /// Fields to be set.
    package let values: [String: FieldValue]
    /// Fields to be left without a value.
    package let cleared: Set<String>
    /// When all of the record's fields were edited last.
    package let edited: EditTimes
}

/// Changes that are to be sent, in a possible order.
package struct ExportBatch: Sendable {
    /// Parents first.
    package var items: [ExportItem] = []
    var lane = Outbox.Lane.edits
    /// Ranges of the outbox that were read, and how far each was.
    var ranges: [RangeProgress] = []
    /// Records that wait for a refused record, with its name.
    var parked: [Parked] = []
    /// Records that are damaged here, and are not sent.
    package var damaged: [Damaged] = []
    /// Records of these ranges that can't be sent now, with their versions.
    var skipped: [ExportItem.Key: Int64] = [:]
    /// Rows of the outbox whose changes need not be sent any more.
    var obsolete: [Int64] = []

    package init() {}

    package var isEmpty: Bool { items.isEmpty }

    struct RangeProgress: Hashable, Sendable {
        let outbox: Int64
        let next: Int64
    }

    package struct Damaged: Hashable, Sendable {
        let key: ExportItem.Key
        let version: Int64
        package let name: String
        package let type: String
    }

    struct Parked: Hashable, Sendable {
        let key: ExportItem.Key
        let version: Int64
        let waitsFor: String
    }
}

/// The limits of a batch.
package struct ExportLimits: Sendable {
    package var items: Int
    /// Bytes of names and values.
    package var bytes: Int
    /// Bytes of assets that the cloud may not have yet.
    package var assetBytes: Int64

    package init(items: Int, bytes: Int, assetBytes: Int64) {
        self.items = items
        self.bytes = bytes
        self.assetBytes = assetBytes
    }
}

/// The outcome of a change that was sent.
package enum ExportResult: Hashable, Sendable {
    /// The cloud has it, under this tag.
    case saved(tag: String)
    case deleted
    /// The cloud does not have the change. It is tried again when the record is changed, or at a time (microseconds since 1970 UTC).
    case refused(code: String, reason: String, nextTry: Int64?)
    /// The cloud has rejected the change permanently. It is reverted here, and kept as a ``RefusedSave``.
    case rejected(code: String, reason: String)
    /// The outcome is not known. The change stays in the outbox.
    case undone
}

/// A request that was sent and has no reply yet.
package struct SentRequest: Hashable, Sendable {
    package let token: String
    package let items: [ExportItem]

    package init(token: String, items: [ExportItem]) {
        self.token = token
        self.items = items
    }
}
