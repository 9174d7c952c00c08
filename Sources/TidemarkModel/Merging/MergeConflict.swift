/// A conflict about a record that one side deleted while the other side edited it.
public struct DeletionConflict: Hashable, Sendable {
    /// The record type's name.
    public let type: String
    /// The record's name.
    public let record: String
    /// The version that both sides began with; `nil` if it is not known.
    public let ancestor: RecordVersion?
    /// The local side's version; `nil` if the local side deleted the record.
    public let local: RecordVersion?
    /// The store's version; `nil` if the record was deleted from the store.
    public let store: RecordVersion?
}

/// An entry of the log of conflicts: a conflict, and how it was resolved.
public struct MergeConflict: Hashable, Sendable {
    /// The side whose value was taken.
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
    /// The field's name; `nil` if the conflict was about the whole record: its deletion, or another record with the same unique
    /// key.
    public let field: String?
    /// The value that both sides began with.
    public let ancestor: FieldValue?
    /// The local side's value.
    public let local: FieldValue?
    /// The store's value, or the cloud's where a synchronisation merged.
    public let store: FieldValue?
    /// The side whose value was taken.
    public let winner: Winner
    /// The name of the merge policy, as ``MergePolicy/name`` has it; or the delete rule of a relationship that decided; or
    /// ``uniqueKeyPolicy``.
    public let policy: String

    /// The value of ``policy`` for a record that synchronisation merged into another record with the same unique key. ``store``
    /// is the name of that other record, which stays.
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

/// The values of a record on one side. A field without a value is left out.
public struct RecordVersion: Hashable, Sendable {
    /// The values by the names of their fields.
    public var values: [String: FieldValue]
    /// The edit times of the fields, as far as they are known.
    public var times: [String: EditTime]

    /// Makes a version.
    ///
    /// - Parameters:
    ///   - values: The values by the names of their fields.
    ///   - times: The edit times of the fields, as far as they are known.
    public init(_ values: [String: FieldValue], times: [String: EditTime] = [:]) {
        self.values = values
        self.times = times
    }
}
