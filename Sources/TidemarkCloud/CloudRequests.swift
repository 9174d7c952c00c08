import TidemarkModel

/// Changes of records of one zone.
public struct ModifyRecordsRequest: Hashable, Sendable {
    /// The zone of all the records.
    public var zone: CloudZoneID
    /// Done in this order; one for each record at the most.
    public var operations: [RecordOperation]
    /// All or none. Custom zones only.
    public var isAtomic: Bool
    /// Names the request, so that one that is sent again is answered as the first time and does nothing.
    public var clientToken: String?
    /// Fields of the answer's records; `nil` for all.
    public var desiredKeys: Set<String>?

    /// Makes a request.
    ///
    /// - Parameters:
    ///   - zone: The zone of all the records.
    ///   - operations: The changes, in their order; at most one for each record.
    ///   - isAtomic: Whether all changes are made or none. Custom zones only.
    ///   - clientToken: Names the request, so that it can be sent again safely.
    ///   - desiredKeys: Fields of the returned records; `nil` for all.
    public init(
        zone: CloudZoneID, operations: [RecordOperation], isAtomic: Bool = false, clientToken: String? = nil,
        desiredKeys: Set<String>? = nil
    ) {
        self.zone = zone
        self.operations = operations
        self.isAtomic = isAtomic
        self.clientToken = clientToken
        self.desiredKeys = desiredKeys
    }
}

/// The result of one operation.
public enum RecordOutcome: Hashable, Sendable {
    /// As it is now.
    case saved(CloudRecord)
    /// The record is deleted.
    case deleted(CloudRecordID)
    /// The operation failed.
    case failed(CloudError)
}

/// A place in what a database or a zone has gone through. Opaque; it may be used again, and may expire.
public struct CloudToken: RawRepresentable, Hashable, Codable, Sendable {
    /// The cloud's text for the position.
    public let rawValue: String
    /// Makes a token from the text that a cloud has returned.
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// Zones that have changed.
public struct DatabaseChanges: Hashable, Sendable {
    /// Zones that are new or have new changes.
    public var changed: [CloudZoneID]
    /// Zones that were deleted.
    public var deleted: [CloudZoneID]
    /// Deleted by the person, for good: their records are to go everywhere.
    public var purged: [CloudZoneID]
    /// The position after these changes.
    public var token: CloudToken
    /// Whether more changes can be fetched at once with ``token``.
    public var moreComing: Bool
    /// Names the life of the cloud's database: another one after the database was put back to an earlier state. `nil` where the cloud does
    /// not say.
    public var incarnation: String?

    /// Makes a list of changed zones from its members.
    public init(
        changed: [CloudZoneID], deleted: [CloudZoneID], purged: [CloudZoneID], token: CloudToken, moreComing: Bool,
        incarnation: String? = nil
    ) {
        self.incarnation = incarnation
        self.changed = changed
        self.deleted = deleted
        self.purged = purged
        self.token = token
        self.moreComing = moreComing
    }
}

/// Records of a zone that have changed.
public struct ZoneChanges: Hashable, Sendable {
    /// One record that was deleted.
    public struct Deletion: Hashable, Sendable {
        /// The name and zone of the deleted record.
        public let id: CloudRecordID
        /// The type of the deleted record.
        public let type: String

        /// Makes the description of a deletion.
        ///
        /// - Parameters:
        ///   - id: The name and zone of the deleted record.
        ///   - type: The type of the deleted record.
        public init(id: CloudRecordID, type: String) {
            self.id = id
            self.type = type
        }
    }

    /// In the order of their last change, as they are now. A record comes once.
    public enum Change: Hashable, Sendable {
        /// The record was saved; this is its present version.
        case saved(CloudRecord)
        /// The record was deleted.
        case deleted(Deletion)
    }

    /// The changes.
    public var changes: [Change]
    /// The position after these changes.
    public var token: CloudToken
    /// Whether more changes can be fetched at once with ``token``.
    public var moreComing: Bool
    /// Records that the cloud can't tell of, because what it has of them is damaged. They are not among ``changes``.
    public var failed: [RecordFailure]
    /// As ``DatabaseChanges/incarnation``.
    public var incarnation: String?

    /// Makes a list of changes from its members.
    public init(
        changes: [Change], token: CloudToken, moreComing: Bool, failed: [RecordFailure] = [], incarnation: String? = nil
    ) {
        self.failed = failed
        self.incarnation = incarnation
        self.changes = changes
        self.token = token
        self.moreComing = moreComing
    }
}

/// A record that a cloud can't tell of.
public struct RecordFailure: Hashable, Sendable {
    /// The name and zone of the record.
    public let id: CloudRecordID
    /// The tag of what the cloud has of it. A device that has the record under this tag has it whole, and can send it again; see
    /// ``CloudError/Code/recordDamaged``.
    public let changeTag: String?
    /// Why the cloud can't return the record.
    public let error: CloudError

    /// Makes the description of a failure from its members.
    public init(id: CloudRecordID, changeTag: String?, error: CloudError) {
        self.id = id
        self.changeTag = changeTag
        self.error = error
    }
}
