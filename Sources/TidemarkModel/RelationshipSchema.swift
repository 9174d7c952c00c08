/// The effect on a record of deleting a record that it refers to. As Core Data's delete rules. The raw values are stored.
///
/// Core Data declares the rule at the record that is deleted; here the record that has the reference declares it, as `ON DELETE` of SQL does.
public enum DeleteRule: String, Hashable, Codable, CaseIterable, Sendable {
    /// The record loses the reference, and stays.
    case nullify
    /// The record is deleted, too.
    case cascade
    /// The record that it refers to can't be deleted.
    case deny
}

/// A relationship of a record type: a reference field with a target type, a delete rule, and whether the target owns the record.
public struct RelationshipSchema: Hashable, Sendable {
    /// The name of the reference field.
    public let field: String
    /// The name of the record type that the field refers to.
    public let target: String
    /// Whether the target owns the record. A record is shared together with its owner, and is in the same zone.
    public let isOwning: Bool
    /// The effect on the record of deleting the target.
    public let deleteRule: DeleteRule

    /// The ownership and the delete rule in words: `owned, cascade`.
    package var meaning: String { (isOwning ? "owned, " : "weak, ") + deleteRule.rawValue }

    /// Makes a relationship.
    public init(field: String, target: String, isOwning: Bool, deleteRule: DeleteRule) {
        self.field = field
        self.target = target
        self.isOwning = isOwning
        self.deleteRule = deleteRule
    }
}
