/// A record that one side deleted, and the other edited without knowing.
public struct DeletionConflict: Hashable, Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name.
    public let record: String
    /// The version that both sides began with; `nil` where that is not known.
    public let ancestor: RecordVersion?
    /// `nil` where the local side deleted it.
    public let local: RecordVersion?
    /// `nil` where it is gone from the store.
    public let store: RecordVersion?
}

/// A conflict and how it was resolved, as it is logged.
public struct MergeConflict: Hashable, Sendable {
    /// Which side's value counts now.
    public enum Winner: String, Codable, Sendable {
        /// The side whose value the field has now.
        case local, store
        /// A value that neither side had.
        case merged
    }

    /// The record type's name.
    public let type: String
    /// The record's name.
    public let record: String
    /// `nil` when it was about the record as a whole: its deletion, or another record with its unique key.
    public let field: String?
    /// The value that both sides began with.
    public let ancestor: FieldValue?
    /// The local side's value.
    public let local: FieldValue?
    /// The store's value, or the cloud's where a synchronisation merged.
    public let store: FieldValue?
    /// Whose value counts.
    public let winner: Winner
    /// The name of the merge policy, as ``MergePolicy/name`` has it; or the delete rule of a relationship that decided; or
    /// ``uniqueKeyPolicy``.
    public let policy: String

    /// The policy of a record that a synchronisation has made one with another, which agrees with it in a unique key: ``store`` is the
    /// name of the other one, which stays.
    public static let uniqueKeyPolicy = "uniqueKey"

    package init(
        type: String, record: String, field: String?, ancestor: FieldValue?, local: FieldValue?, store: FieldValue?,
        winner: Winner, policy: String
    ) {
        self.type = type
        self.record = record
        self.field = field
        self.ancestor = ancestor
        self.local = local
        self.store = store
        self.winner = winner
        self.policy = policy
    }

    package init(type: String, replaced name: String, by other: String) {
        self.init(
            type: type, record: name, field: nil, ancestor: nil, local: nil, store: .string(other), winner: .store,
            policy: Self.uniqueKeyPolicy)
    }
}

/// A record's values as one side has them; a field without a value is left out.
public struct RecordVersion: Hashable, Sendable {
    /// The values by the names of their fields.
    public var values: [String: FieldValue]
    /// When fields were edited, as far as that is known.
    public var times: [String: EditTime]

    /// Makes a version.
    ///
    /// - Parameter times: When fields were edited; for fields that are missing here that is not known.
    public init(_ values: [String: FieldValue], times: [String: EditTime] = [:]) {
        self.values = values
        self.times = times
    }
}
