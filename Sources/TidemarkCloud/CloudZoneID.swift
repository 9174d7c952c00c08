/// Names a zone: a set of records that is fetched, shared and deleted as one. As `CKRecordZone.ID`.
public struct CloudZoneID: Hashable, Codable, Sendable {
    public let zoneName: String
    /// The user record name of whom the zone belongs to; ``defaultOwner`` for whoever asks.
    public let ownerName: String

    public init(_ zoneName: String, owner: String = CloudZoneID.defaultOwner) {
        self.zoneName = zoneName
        ownerName = owner
    }

    /// Stands for the account that asks. As `CKCurrentUserDefaultName`.
    public static let defaultOwner = "__defaultOwner__"
    /// The zone that every database has. It knows no changes and no atomic requests.
    public static let `default` = CloudZoneID("_defaultZone")

    public var isDefault: Bool { zoneName == Self.default.zoneName }
}

extension CloudZoneID: CustomStringConvertible {
    public var description: String { ownerName == Self.defaultOwner ? zoneName : "\(zoneName) of \(ownerName)" }
}

/// Names a record in a database. As `CKRecord.ID`.
public struct CloudRecordID: Hashable, Codable, Sendable {
    public let recordName: String
    public let zone: CloudZoneID

    public init(_ recordName: String, in zone: CloudZoneID) {
        self.recordName = recordName
        self.zone = zone
    }
}
