/// One change that a request asks for.
public struct RecordOperation: Hashable, Sendable {
    /// What is to be done; the names are those of CloudKit Web Services.
    public enum Kind: String, Codable, CaseIterable, Sendable {
        /// Inserts; one that is there is `serverRecordChanged`.
        case create
        /// Sets the fields given, if the tag is the record's.
        case update
        /// Sets the fields given, making the record if need be.
        case forceUpdate
        /// Sets the fields given and clears the others, if the tag is the record's.
        case replace
        /// Sets the fields given and clears the others, making the record if need be.
        case forceReplace
        /// Deletes, if the tag is the record's.
        case delete
        /// Deletes; one that is not there is deleted already.
        case forceDelete
    }

    /// How a save treats what the cloud has. As `CKModifyRecordsOperation.RecordSavePolicy`.
    public enum SavePolicy: Sendable {
        /// Sets the fields given if nobody has changed the record since.
        case ifServerRecordUnchanged
        /// Sets the fields given.
        case changedKeys
        /// Makes the record what is given.
        case allKeys
    }

    /// The kind of change.
    public let kind: Kind
    /// Of a deletion, the name and the tag count.
    public let record: CloudRecord
    /// Fields to be left without a value.
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

    /// A save.
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

    /// A deletion; without a tag, whatever the record is by then.
    public static func delete(_ id: CloudRecordID, changeTag: String? = nil) -> RecordOperation {
        RecordOperation(changeTag == nil ? .forceDelete : .delete, CloudRecord(id, type: "", changeTag: changeTag))
    }

    /// Whether the operation deletes its record.
    public var isDeletion: Bool { kind == .delete || kind == .forceDelete }
}
