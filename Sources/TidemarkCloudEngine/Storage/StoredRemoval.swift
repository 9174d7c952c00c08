/// A removal that goes on after the request that has asked for it.
public struct StoredRemoval: Hashable, Sendable {
    public enum Kind: Int, Sendable {
        /// Records with a `deleteSelf` reference to the target are deleted.
        case dependents = 1
        /// Records whose parent is the target lose their parent.
        case children = 2
        /// Records of a deleted zone are removed.
        case zone = 3
    }

    /// 0 before it is saved.
    public var id: Int64 = 0
    public let zone: Int64
    public let kind: Kind
    /// The name of the record that was deleted; empty for a zone.
    public let target: String
    /// The change that has deleted the target: records that were saved later are not concerned.
    public let change: Int64
    /// The account that has deleted the target.
    public let user: String

    package init(id: Int64 = 0, zone: Int64, kind: Kind, target: String, change: Int64, user: String) {
        (self.id, self.zone, self.kind, self.target, self.change, self.user) = (id, zone, kind, target, change, user)
    }
}
