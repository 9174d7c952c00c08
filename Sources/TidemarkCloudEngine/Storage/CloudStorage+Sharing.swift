import Foundation
import TidemarkCloud
import TidemarkModel

/// What a storage keeps for sharing, within a transaction. Every function may throw `CloudError` `internalError`.
public protocol SharingTransaction {
    // Shares

    func share(_ id: Int64) throws(CloudError) -> StoredShare?
    /// One that has not ended, by the name of its record.
    func share(named name: String, in zone: Int64) throws(CloudError) -> StoredShare?
    /// Those that have not ended.
    func shares(in zone: Int64) throws(CloudError) -> [StoredShare]
    /// Inserts it, or replaces the one of its number; returns it with its number.
    func save(_ share: StoredShare) throws(CloudError) -> StoredShare

    // Participants

    /// In the order in which they came.
    func participants(of share: Int64) throws(CloudError) -> [StoredParticipant]
    /// As what an account takes part, or took, in shares of a zone, or in all.
    func participants(called user: String, in zone: Int64?) throws(CloudError) -> [StoredParticipant]
    /// Inserts it, or replaces the one of its identifier.
    func save(_ participant: StoredParticipant) throws(CloudError)
    func removeParticipant(_ id: String) throws(CloudError)

    // Links

    func link(_ digest: Data) throws(CloudError) -> StoredLink?
    func linkCount(of share: Int64) throws(CloudError) -> Int
    func add(_ link: StoredLink) throws(CloudError)
    /// Whether there was one.
    func removeLink(_ id: String, to share: Int64) throws(CloudError) -> Bool
    /// Those that are limited to a participant, or all; returns what they are called.
    func removeLinks(to share: Int64, participant: String?) throws(CloudError) -> [String]

    // Hierarchies

    /// The shares that records are in, by the records' names.
    func shares(covering names: [String], in zone: Int64) throws(CloudError) -> [String: Int64]
    /// What changed in shares after a number, in that order, what has left them among it.
    func covered(by shares: [Int64], after change: Int64, limit: Int) throws(CloudError) -> [CoveredRecord]
    /// Inserts them, or replaces those of equal share and name.
    func save(_ records: [CoveredRecord], in zone: Int64) throws(CloudError)
    func removeCovered(by share: Int64) throws(CloudError)

    // Assets

    /// Notes that somebody else than the owner has uploaded one of the owner's assets.
    func noteUpload(_ digest: String, owner: String, by user: String) throws(CloudError)
    /// Which of the digests somebody has uploaded for an owner.
    func uploads(_ digests: Set<String>, owner: String, by user: String) throws(CloudError) -> Set<String>
    /// Which of the digests records of a zone name; those of some shares, or all.
    func named(_ digests: Set<String>, in zone: Int64, shares: [Int64]?) throws(CloudError) -> Set<String>

    // What was done

    func lastAuditTime() throws(CloudError) -> Int64?
    func add(_ entry: StoredAuditEntry) throws(CloudError)
    func auditEntries(in zone: Int64, after time: Int64) throws(CloudError) -> [StoredAuditEntry]
}

/// A share as it is kept.
public struct StoredShare: Hashable, Sendable {
    /// 0 before it is saved.
    public var id: Int64
    public let zone: Int64
    /// Of its record.
    public let name: String
    /// `nil` of a share of the whole zone.
    public let root: String?
    public var title: String?
    public var publicPermission: ShareParticipant.Permission
    /// The last change of it, and of the hierarchy that it covers.
    public var touched: Int64
    public var isEnded: Bool

    package init(
        id: Int64, zone: Int64, name: String, root: String?, title: String? = nil, publicPermission: ShareParticipant.Permission,
        touched: Int64, isEnded: Bool
    ) {
        self.id = id
        self.zone = zone
        self.name = name
        self.root = root
        self.title = title
        self.publicPermission = publicPermission
        self.touched = touched
        self.isEnded = isEnded
    }
}

/// A participant as it is kept; of who is out, too, so that their devices learn of it.
public struct StoredParticipant: Hashable, Sendable {
    public let id: String
    public let share: Int64
    public let zone: Int64
    /// The account's name; `nil` until an account takes up the invitation. Of one that is pending, whoever it was before: an invitation is
    /// for who has the address by then.
    public var user: String?
    public var name: PersonName?
    /// By what the person was invited.
    public var lookUp: UserLookUp?
    public var role: ShareParticipant.Role
    public var permission: ShareParticipant.Permission
    public var acceptanceStatus: ShareParticipant.AcceptanceStatus
    /// The change since which they see what is shared; 0 for never.
    public var began: Int64
    /// The change since which they see it no longer; 0 for never.
    public var ended: Int64
    /// The change in which they were invited last; 0 for never.
    public var invited: Int64
    /// The change in which somebody else has removed them last; 0 for never. It holds until they take up an invitation from after it.
    public var expelled: Int64

    package init(
        id: String, share: Int64, zone: Int64, user: String? = nil, name: PersonName? = nil, lookUp: UserLookUp? = nil,
        role: ShareParticipant.Role, permission: ShareParticipant.Permission, acceptanceStatus: ShareParticipant.AcceptanceStatus,
        began: Int64, ended: Int64, invited: Int64, expelled: Int64
    ) {
        self.id = id
        self.share = share
        self.zone = zone
        self.user = user
        self.name = name
        self.lookUp = lookUp
        self.role = role
        self.permission = permission
        self.acceptanceStatus = acceptanceStatus
        self.began = began
        self.ended = ended
        self.invited = invited
        self.expelled = expelled
    }
}

/// A link as it is kept.
public struct StoredLink: Hashable, Sendable {
    /// SHA-256 of what gives access.
    public let digest: Data
    public let id: String
    public let share: Int64
    public let participant: String?

    package init(
        digest: Data, id: String, share: Int64, participant: String?
    ) {
        self.digest = digest
        self.id = id
        self.share = share
        self.participant = participant
    }
}

/// That a record is, or was, in the hierarchy that a share covers.
public struct CoveredRecord: Hashable, Sendable {
    public let share: Int64
    public let name: String
    public let type: String
    /// The change in which it came in, changed last there, or left.
    public let change: Int64
    public let isGone: Bool

    package init(
        share: Int64, name: String, type: String, change: Int64, isGone: Bool
    ) {
        self.share = share
        self.name = name
        self.type = type
        self.change = change
        self.isGone = isGone
    }
}

/// One change of a share as it is kept.
public struct StoredAuditEntry: Hashable, Sendable {
    public let time: Int64
    public let zone: Int64
    /// The share itself, and not its name: another share of a zone is called the same.
    public let share: Int64
    public let user: String
    public let kind: ShareAuditEntry.Kind
    public let subject: String?
    public let value: String?

    package init(
        time: Int64, zone: Int64, share: Int64, user: String, kind: ShareAuditEntry.Kind, subject: String?, value: String?
    ) {
        self.time = time
        self.zone = zone
        self.share = share
        self.user = user
        self.kind = kind
        self.subject = subject
        self.value = value
    }
}
