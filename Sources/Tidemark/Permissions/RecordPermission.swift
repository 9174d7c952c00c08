public import TidemarkModel

/// What the user may do with a record, and why.
///
/// It follows from the shares that the store has. When an operation is performed, the cloud decides.
public struct RecordPermission: Hashable, Sendable {
    /// The record.
    public let record: RecordName
    /// The permission, which all records of the same share or zone have in common.
    package let effective: EffectivePermission

    init(_ record: RecordName, _ effective: EffectivePermission) {
        self.record = record
        self.effective = effective
    }

    /// The store of the record: private for the user's own records, shared for records of others.
    public var scope: StoreScope { effective.scope }
    /// The zone that the record is in.
    public var zone: ZoneName { effective.zone }
    /// Whether the record takes part in a share.
    public var isShared: Bool { effective.target.isShared }
    /// The name of the share that covers the record; `nil` if there is none, or none is known.
    public var share: String? { effective.share }
    /// The owner of the record, as far as it is known; `nil` for the user's own records that are not shared.
    public var owner: UserIdentity? { effective.owner }
    /// Whether the account of this container owns the record's zone.
    public var isOwner: Bool { role == .owner }
    /// The user's role in the share.
    public var role: ShareParticipant.Role { effective.actor.role ?? .unknown }
    /// The permission that the account has in the share. As `CKShare.Participant.permission`.
    public var permission: ShareParticipant.Permission { effective.actor.permission }
    /// Whether the account has accepted the invitation. As `CKShare.Participant.acceptanceStatus`.
    public var acceptanceStatus: ShareParticipant.AcceptanceStatus { effective.actor.acceptanceStatus }

    /// Whether the record may be read.
    public var canRead: Bool { effective.canRead }
    /// Whether fields of the record may be changed. As `canUpdateRecord(forManagedObjectWith:)` of Core Data's container.
    public var canEdit: Bool { effective.edit.isAllowed }
    /// Whether the record may be deleted. As `canDeleteRecord(forManagedObjectWith:)` of Core Data's container.
    public var canDelete: Bool { effective.canDelete }
    /// Whether the user may share the record. A record that is shared already can't be shared again.
    public var canShare: Bool { effective.canShare }
    /// The reason why the user may edit the record, or may not; with the remedy.
    public var reason: String { effective.reason }

    /// Returns whether the user may perform an operation on the record, with the rule and the remedy.
    public func decision(for operation: SharePolicy.Operation) -> ShareDecision {
        SharePolicy.decide(operation, on: effective.target, by: effective.actor)
    }
}

/// What the user may do with all records of one share, or of one zone without shares, and why.
package final class EffectivePermission: Sendable {
    let scope: StoreScope
    package let zone: ZoneName
    let share: String?
    package let owner: UserIdentity?
    let target: SharePolicy.Target
    let actor: SharePolicy.Actor

    let edit: ShareDecision
    let canRead, canDelete, canShare: Bool
    let reason: String

    /// - Parameter share: The share that covers the records; `nil` if none is known.
    init(scope: StoreScope, zone: ZoneName, share: Share?, root: String? = nil, isUnsaved: Bool) {
        self.scope = scope
        self.zone = zone
        self.share = share?.name
        if let share {
            actor = share.actor
            target = share.target(record: root, isUnsaved: isUnsaved)
            owner = share.owner?.identity ?? Self.owner(zone)
        } else if scope == .shared, zone.owner == nil {
            // A record of the shared store that is in no zone of another owner was never saved in a cloud.
            actor = .stranger
            target = SharePolicy.Target(scope: scope.databaseScope, isUnsaved: true)
            owner = nil
        } else if scope == .shared {
            // The zone belongs to another owner, and its share is not known.
            actor = .stranger
            target = SharePolicy.Target(scope: scope.databaseScope, isShared: true, isUnsaved: isUnsaved)
            owner = Self.owner(zone)
        } else {
            actor = .owner
            target = SharePolicy.Target(scope: scope.databaseScope, isUnsaved: isUnsaved)
            owner = nil
        }
        edit = SharePolicy.decide(.update, on: target, by: actor)
        canRead = SharePolicy.decide(.read, on: target, by: actor).isAllowed
        canDelete = SharePolicy.decide(.delete, on: target, by: actor).isAllowed
        canShare = SharePolicy.decide(.share, on: target, by: actor).isAllowed
        reason = edit.reason + (edit.remedy.map { "; \($0.text)" } ?? "")
    }

    private static func owner(_ zone: ZoneName) -> UserIdentity? { zone.owner.map { UserIdentity(userRecordName: $0) } }
}

extension EffectivePermission: Hashable {
    package static func == (left: EffectivePermission, right: EffectivePermission) -> Bool {
        left === right
            || left.target == right.target && left.actor == right.actor && left.zone == right.zone && left.share == right.share
                && left.owner == right.owner
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(zone)
        hasher.combine(share)
        hasher.combine(actor)
        hasher.combine(target)
    }
}

/// A filter of the records in a permission report.
public enum PermissionFilter: String, CaseIterable, Sendable {
    /// Records that the user may edit.
    case editable
    /// Records that the user may read, but not edit.
    case readOnly = "read-only"
    /// Records that the user owns.
    case owned
    /// Records that are shared, by the user or by others.
    case shared

    /// Returns whether the filter accepts a permission.
    public func includes(_ permission: RecordPermission) -> Bool { includes(permission.effective) }

    func includes(_ effective: EffectivePermission) -> Bool {
        switch self {
        case .editable: effective.edit.isAllowed
        case .readOnly: effective.canRead && !effective.edit.isAllowed
        case .owned: effective.actor.role == .owner
        case .shared: effective.target.isShared
        }
    }
}
