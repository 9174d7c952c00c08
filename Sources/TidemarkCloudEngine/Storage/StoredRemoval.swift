/// A removal that continues after the request that began it, in further transactions.
public struct StoredRemoval: Hashable, Sendable {
    /// The kinds of removals. The raw values are stored.
    public enum Kind: Int, Sendable {
        /// Records with a `deleteSelf` reference to the target are deleted.
        case dependents = 1
        /// Records whose parent is the target lose that parent.
        case children = 2
        /// The records of a deleted zone are removed, tombstones among them.
        case zone = 3
    }

    /// Unique among the owner's removals; 0 before it is saved.
    public var id: Int64 = 0
    /// The zone of the target.
    public let zone: StoredZone.ID
    /// The kind of the removal.
    public let kind: Kind
    /// The name of the record that was deleted; empty for a zone.
    public let target: String
    /// The change that deleted the target. Dependents that were saved later stay.
    public let change: Int64
    /// The user record name of the account that deleted the target.
    public let user: String

    package init(id: Int64 = 0, zone: StoredZone.ID, kind: Kind, target: String, change: Int64, user: String) {
        (self.id, self.zone, self.kind, self.target, self.change, self.user) = (id, zone, kind, target, change, user)
    }
}
