import Foundation
public import TidemarkModel

extension Share {
    /// Makes a store's share from a cloud's.
    ///
    /// - Parameters:
    ///   - share: The cloud's share.
    ///   - scope: The scope of the database that the share comes from.
    public init(_ share: CloudShare, scope: StoreScope) {
        var root: String?
        if case .hierarchy(let name) = share.coverage { root = name }
        self.init(
            scope: scope, zone: ZoneName(share.id.zone, scope: scope), name: share.id.recordName, root: root, title: share.title,
            publicPermission: share.publicPermission, participants: share.participants, currentUser: share.currentUser,
            changeTag: share.changeTag)
    }

    /// The identifier of the share's record in its database.
    public var cloudID: CloudRecordID { CloudRecordID(name, in: zone.cloudZone) }
}

extension ZoneName {
    /// Makes a store's name of a cloud's zone.
    ///
    /// - Parameters:
    ///   - zone: The cloud's zone.
    ///   - scope: The scope of the database that the zone is in. A zone of the private database gets no owner.
    public init(_ zone: CloudZoneID, scope: StoreScope) {
        self.init(
            zone.zoneName, owner: scope == .private || zone.ownerName == CloudZoneID.defaultOwner ? nil : zone.ownerName)
    }

    /// The zone's identifier in a cloud. Not for ``default``, whose name in a cloud the configuration of the synchronisation
    /// sets.
    public var cloudZone: CloudZoneID { CloudZoneID(name, owner: owner ?? CloudZoneID.defaultOwner) }

    /// The name of the record that the zone was made to share. `nil` for any other zone, and if the zone's name has only a
    /// digest, because the record's name is longer than 200 bytes or has characters other than letters, digits, `-` and `_`.
    package var shareRoot: String? {
        guard owner == nil, name.hasPrefix(Self.sharePrefix) else { return nil }
        let root = name.dropFirst(Self.sharePrefix.count).prefix { $0 != "." }
        return root.isEmpty ? nil : String(root)
    }

    /// The beginning of the names of zones that are made to share a record and its graph.
    private static let sharePrefix = "TidemarkShare-"

    /// Returns the zone in which a record and its graph are shared. It is the same on all devices, so that two devices that share
    /// a record at the same time make one share.
    public static func ofShare(root: String) -> ZoneName {
        let isPlain =
            root.utf8.count <= 200
            && root.utf8.allSatisfy { byte in
                (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte) || byte == 0x2d
                    || byte == 0x5f
            }
        guard !isPlain else { return ZoneName(sharePrefix + root) }
        var digest = AssetDigest()
        digest.update(Data(root.utf8))
        return ZoneName(sharePrefix + "." + digest.finish().digest)
    }

    /// Whether the zone was made to share records, or belongs to another account.
    public var isOfShare: Bool { owner != nil || name.hasPrefix(Self.sharePrefix) }
}
