public import TidemarkModel

/// What one may do with a record, and why.
///
/// It says what the store knows of the cloud's shares: when something is done, the cloud decides.
public struct RecordPermission: Hashable, Sendable {
    /// The record that it is about.
    public let record: RecordName
    /// What it has in common with the other records of its place.
    package let effective: EffectivePermission

    init(_ record: RecordName, _ effective: EffectivePermission) {
        self.record = record
        self.effective = effective
    }

    /// Private for one's own records, shared for those of others.
    public var scope: StoreScope { effective.scope }
    /// The zone that the record is in.
    public var zone: ZoneName { effective.zone }
    /// Whether the record takes part in a share.
    public var isShared: Bool { effective.target.isShared }
    /// The name of the share that covers it; `nil` where there is none, or none is known.
    public var share: String? { effective.share }
    /// Whose record it is, as far as it is known; `nil` for one's own that are not shared.
    public var owner: UserIdentity? { effective.owner }
    /// Whether the account of this container owns the record's zone.
    public var isOwner: Bool { role == .owner }
    /// One's own role.
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
    /// Whether one may begin to share it: what is shared already can't be shared once more.
    public var canShare: Bool { effective.canShare }
    /// Why one may edit it, or may not and what would change that.
    public var reason: String { effective.reason }

    /// Whether one may do something to it, by which rule, and what would change that.
    public func decision(for operation: SharePolicy.Operation) -> ShareDecision {
        SharePolicy.decide(operation, on: effective.target, by: effective.actor)
    }
}

/// What one may do with all records that are covered by one share, or lie in one zone without any, and why.
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

    /// - Parameter share: What covers the records; `nil` where none is known to.
    init(scope: StoreScope, zone: ZoneName, share: Share?, root: String? = nil, isUnsaved: Bool) {
        self.scope = scope
        self.zone = zone
        self.share = share?.name
        if let share {
            actor = share.actor
            target = share.target(record: root, isUnsaved: isUnsaved)
            owner = share.owner?.identity ?? Self.owner(zone)
        } else if scope == .shared, zone.owner == nil {
            // What is in no zone of others was never anybody else's.
            actor = .stranger
            target = SharePolicy.Target(scope: scope.databaseScope, isUnsaved: true)
            owner = nil
        } else if scope == .shared {
            // It is shared by somebody, and nothing is known of how.
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

/// Some of the records that a report could tell of.
public enum PermissionFilter: String, CaseIterable, Sendable {
    /// What one may edit.
    case editable
    /// What one may read and not edit.
    case readOnly = "read-only"
    /// What is one's own.
    case owned
    /// What others take part in, or let one take part in.
    case shared

    /// Whether the filter lets a permission through.
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
