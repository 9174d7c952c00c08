import TidemarkModel

/// Changes of records of one zone.
public struct ModifyRecordsRequest: Hashable, Sendable {
    public var zone: CloudZoneID
    /// Done in this order; one for each record at the most.
    public var operations: [RecordOperation]
    /// All or none. Custom zones only.
    public var isAtomic: Bool
    /// Names the request, so that one that is sent again is answered as the first time and does nothing.
    public var clientToken: String?
    /// Fields of the answer's records; `nil` for all.
    public var desiredKeys: Set<String>?

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

/// What became of one operation.
public enum RecordOutcome: Hashable, Sendable {
    /// As it is now.
    case saved(CloudRecord)
    case deleted(CloudRecordID)
    case failed(CloudError)
}

/// A place in what a database or a zone has gone through. Opaque; it may be used again, and may expire.
public struct CloudToken: RawRepresentable, Hashable, Codable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
}

/// Zones that have changed.
public struct DatabaseChanges: Hashable, Sendable {
    public var changed: [CloudZoneID]
    public var deleted: [CloudZoneID]
    /// Deleted by the person, for good: their records are to go everywhere.
    public var purged: [CloudZoneID]
    public var token: CloudToken
    public var moreComing: Bool

    public init(
        changed: [CloudZoneID], deleted: [CloudZoneID], purged: [CloudZoneID], token: CloudToken, moreComing: Bool
    ) {
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
        public let id: CloudRecordID
        public let type: String

        public init(id: CloudRecordID, type: String) {
            self.id = id
            self.type = type
        }
    }

    /// In the order of their last change, as they are now. A record comes once.
    public enum Change: Hashable, Sendable {
        case saved(CloudRecord)
        case deleted(Deletion)
    }

    public var changes: [Change]
    public var token: CloudToken
    public var moreComing: Bool

    public init(changes: [Change], token: CloudToken, moreComing: Bool) {
        self.changes = changes
        self.token = token
        self.moreComing = moreComing
    }
}
