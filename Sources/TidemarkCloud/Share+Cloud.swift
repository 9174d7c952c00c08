import Foundation
public import TidemarkModel

extension Share {
    /// A cloud's share, as a store knows it.
    ///
    /// - Parameter scope: The database that it was seen in.
    public init(_ share: CloudShare, scope: StoreScope) {
        var root: String?
        if case .hierarchy(let name) = share.coverage { root = name }
        self.init(
            scope: scope, zone: ZoneName(share.id.zone, scope: scope), name: share.id.recordName, root: root, title: share.title,
            publicPermission: share.publicPermission, participants: share.participants, currentUser: share.currentUser,
            changeTag: share.changeTag)
    }

    /// The record of the share in its database.
    public var cloudID: CloudRecordID { CloudRecordID(name, in: zone.cloudZone) }
}

extension ZoneName {
    /// - Parameter scope: The database in which it is called so. In one's own it has no owner but oneself.
    public init(_ zone: CloudZoneID, scope: StoreScope) {
        self.init(
            zone.zoneName, owner: scope == .private || zone.ownerName == CloudZoneID.defaultOwner ? nil : zone.ownerName)
    }

    /// As a cloud calls it; not for ``default``, whose name a synchronisation's configuration says.
    public var cloudZone: CloudZoneID { CloudZoneID(name, owner: owner ?? CloudZoneID.defaultOwner) }

    /// The name of the record whose graph the zone was made to share; `nil` for any other zone, and where the zone's name has only a
    /// digest of it, because the record's has other characters than letters, digits, `-` and `_`.
    package var shareRoot: String? {
        guard owner == nil, name.hasPrefix(Self.sharePrefix) else { return nil }
        let root = name.dropFirst(Self.sharePrefix.count).prefix { $0 != "." }
        return root.isEmpty ? nil : String(root)
    }

    /// What the names of zones begin with that are made to share a record and its graph.
    private static let sharePrefix = "TidemarkShare-"

    /// The zone in which a record and its graph are shared: on all devices the same, so that two that share it at once share it once.
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

    /// Whether it was made to share records.
    public var isOfShare: Bool { owner != nil || name.hasPrefix(Self.sharePrefix) }
}
