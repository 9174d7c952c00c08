/// The identifier of a zone: a set of records that is fetched, shared and deleted as a whole. As `CKRecordZone.ID`.
public struct CloudZoneID: Hashable, Codable, Sendable {
    /// The zone's name, unique among the zones of its owner.
    public let zoneName: String
    /// The user record name of the zone's owner; ``defaultOwner`` for the calling account.
    public let ownerName: String

    /// Names a zone.
    ///
    /// - Parameters:
    ///   - zoneName: The zone's name.
    ///   - owner: The owner's user record name.
    public init(_ zoneName: String, owner: String = CloudZoneID.defaultOwner) {
        self.zoneName = zoneName
        ownerName = owner
    }

    /// The owner name that stands for the calling account. As `CKCurrentUserDefaultName`.
    public static let defaultOwner = "__defaultOwner__"
    /// The zone that every database has. It supports neither fetching changes nor atomic requests.
    public static let `default` = CloudZoneID("_defaultZone")

    /// Whether this is the default zone, of any owner.
    public var isDefault: Bool { zoneName == Self.default.zoneName }
}

extension CloudZoneID: CustomStringConvertible {
    public var description: String { ownerName == Self.defaultOwner ? zoneName : "\(zoneName) of \(ownerName)" }
}

/// The identifier of a record in a database. As `CKRecord.ID`.
public struct CloudRecordID: Hashable, Codable, Sendable {
    /// The record's name, unique in its zone.
    public let recordName: String
    /// The record's zone.
    public let zone: CloudZoneID

    /// Names a record.
    ///
    /// - Parameters:
    ///   - recordName: The record's name.
    ///   - zone: The record's zone.
    public init(_ recordName: String, in zone: CloudZoneID) {
        self.recordName = recordName
        self.zone = zone
    }
}
