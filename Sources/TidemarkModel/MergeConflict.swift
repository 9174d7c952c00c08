/// A field that both sides changed, to different values.
public struct FieldConflict: Hashable, Sendable {
    public let type: String
    public let record: String
    public let field: String
    public let ancestor: FieldValue?
    public let local: FieldValue?
    public let store: FieldValue?
    /// When each side edited it; `nil` where that is not known, which counts as long ago.
    public let localTime: EditTime?
    public let storeTime: EditTime?

    public init(
        type: String, record: String, field: String, ancestor: FieldValue?, local: FieldValue?, store: FieldValue?,
        localTime: EditTime? = nil, storeTime: EditTime? = nil
    ) {
        self.type = type
        self.record = record
        self.field = field
        self.ancestor = ancestor
        self.local = local
        self.store = store
        self.localTime = localTime
        self.storeTime = storeTime
    }
}

/// A record that one side deleted, and the other edited without knowing.
public struct DeletionConflict: Hashable, Sendable {
    public let type: String
    public let record: String
    public let ancestor: RecordVersion?
    /// `nil` where the local side deleted it.
    public let local: RecordVersion?
    /// `nil` where it is gone from the store.
    public let store: RecordVersion?
}

/// A conflict and how it was settled, as it is logged.
public struct MergeConflict: Hashable, Sendable {
    /// Which side's value counts now.
    public enum Winner: String, Codable, Sendable {
        case local, store
        /// A value that neither side had.
        case merged
    }

    public let type: String
    public let record: String
    /// `nil` when it was about the record as a whole: its deletion.
    public let field: String?
    public let ancestor: FieldValue?
    public let local: FieldValue?
    public let store: FieldValue?
    public let winner: Winner
    public let policy: String
}

/// A record's values as one side has them; a field without a value is left out.
public struct RecordVersion: Hashable, Sendable {
    public var values: [String: FieldValue]
    /// When fields were edited, as far as that is known.
    public var times: [String: EditTime]

    public init(_ values: [String: FieldValue], times: [String: EditTime] = [:]) {
        self.values = values
        self.times = times
    }
}
