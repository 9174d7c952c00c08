import TidemarkModel

/// A request to change records of one zone.
public struct ModifyRecordsRequest: Hashable, Sendable {
    /// The zone of all the records.
    public var zone: CloudZoneID
    /// The changes, in their order; at most one for each record.
    public var operations: [RecordOperation]
    /// Whether all changes are made or none. Custom zones only.
    public var isAtomic: Bool
    /// A name for the request. A request that is sent again under the same name gets the first answer again, and has no second
    /// effect.
    public var clientToken: String?
    /// Fields of the returned records; `nil` for all.
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
    /// The record was saved; this is its present version.
    case saved(CloudRecord)
    /// The record is deleted.
    case deleted(CloudRecordID)
    /// The operation failed.
    case failed(CloudError)
}

/// A position in the changes of a database or a zone. Opaque. It can be used several times, and may expire.
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
    /// Zones that their owner has deleted permanently: every device is to delete their records.
    public var purged: [CloudZoneID]
    /// The position after these changes.
    public var token: CloudToken
    /// Whether more changes can be fetched at once with ``token``.
    public var moreComing: Bool
    /// The name of the database's incarnation. It changes when the database is restored to an earlier state. `nil` if the cloud
    /// does not send it.
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

    /// A change of a record. Changes are in the order of the records' last changes, and a record appears once.
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
    /// Records that are damaged in the cloud, so that it can't return them. They are not among ``changes``.
    public var failed: [RecordFailure]
    /// The name of the zone's incarnation: the database's, as in ``DatabaseChanges/incarnation``, and a count of the times that
    /// the zone was deleted and made again. `nil` if the cloud does not send it.
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

/// A record that a cloud can't return.
public struct RecordFailure: Hashable, Sendable {
    /// The name and zone of the record.
    public let id: CloudRecordID
    /// The change tag of the cloud's damaged version. A device that has the record under this tag has that version undamaged, and
    /// can send it again; see ``CloudError/Code/recordDamaged``.
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
