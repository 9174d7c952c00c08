/// A change of a record in a request.
public struct RecordOperation: Hashable, Sendable {
    /// The kind of change. The names are those of CloudKit Web Services.
    public enum Kind: String, Codable, CaseIterable, Sendable {
        /// Creates the record. Fails with `serverRecordChanged` if the record exists.
        case create
        /// Sets the given fields, if the change tag is the record's present one.
        case update
        /// Sets the given fields, and creates the record if it does not exist.
        case forceUpdate
        /// Sets the given fields and clears the others, if the change tag is the record's present one.
        case replace
        /// Sets the given fields and clears the others, and creates the record if it does not exist.
        case forceReplace
        /// Deletes the record, if the change tag is its present one.
        case delete
        /// Deletes the record. Succeeds if the record does not exist.
        case forceDelete
    }

    /// How a save treats the cloud's version of the record. As `CKModifyRecordsOperation.RecordSavePolicy`.
    public enum SavePolicy: Sendable {
        /// Sets the given fields, if the record was not changed since its change tag.
        case ifServerRecordUnchanged
        /// Sets the given fields, whatever the cloud has.
        case changedKeys
        /// Sets the given fields and clears all others, whatever the cloud has.
        case allKeys
    }

    /// The kind of change.
    public let kind: Kind
    /// The record. Of a deletion's record only the name and the change tag matter.
    public let record: CloudRecord
    /// The fields that lose their values.
    public let cleared: Set<String>

    /// Makes an operation.
    ///
    /// - Parameters:
    ///   - kind: The kind of change.
    ///   - record: The record; for a deletion, its name and tag.
    ///   - cleared: Fields that lose their values.
    public init(_ kind: Kind, _ record: CloudRecord, clearing cleared: Set<String> = []) {
        self.kind = kind
        self.record = record
        self.cleared = cleared
    }

    /// Returns the operation of a save.
    ///
    /// - Parameters:
    ///   - record: The record, with the fields to set.
    ///   - cleared: The fields that lose their values. ``SavePolicy/allKeys`` ignores them, since it clears every field that is
    ///     not set.
    ///   - policy: How the save treats the cloud's version.
    public static func save(
        _ record: CloudRecord, clearing cleared: Set<String> = [], policy: SavePolicy = .ifServerRecordUnchanged
    ) -> RecordOperation {
        switch policy {
        case .ifServerRecordUnchanged:
            RecordOperation(record.changeTag == nil ? .create : .update, record, clearing: cleared)
        case .changedKeys: RecordOperation(.forceUpdate, record, clearing: cleared)
        case .allKeys: RecordOperation(.forceReplace, record)
        }
    }

    /// Returns the operation of a deletion. Without a change tag, any version of the record is deleted.
    public static func delete(_ id: CloudRecordID, changeTag: String? = nil) -> RecordOperation {
        RecordOperation(changeTag == nil ? .forceDelete : .delete, CloudRecord(id, type: "", changeTag: changeTag))
    }

    /// Whether the operation deletes its record.
    public var isDeletion: Bool { kind == .delete || kind == .forceDelete }
}
