/// The rule that resolves a field which both sides changed. As `NSMergePolicy` of Core Data.
///
/// *Local* is the version that is being saved. *Store* is the version that the store, or the cloud, has by then. *Ancestor* is
/// the version that both began with. A field that only one side changed gets that side's value under every policy except
/// ``overwrite`` and ``rollback``, which take a whole record.
public enum MergePolicy: Sendable {
    /// The save fails and lists every record in conflict with its three versions.
    case error
    /// The store's value.
    case mergeByPropertyStoreTrump
    /// The local value; the default.
    case mergeByPropertyObjectTrump
    /// The whole local record.
    case overwrite
    /// The whole record of the store.
    case rollback
    /// The later edit of the field; see ``EditTime``. A field that was changed and changed back counts as edited, and so does a
    /// field that both sides changed to the same value.
    case latestEdit
    /// A rule of the program.
    case custom(MergeRule)

    /// The name that is logged.
    public var name: String {
        switch self {
        case .error: "error"
        case .mergeByPropertyStoreTrump: "mergeByPropertyStoreTrump"
        case .mergeByPropertyObjectTrump: "mergeByPropertyObjectTrump"
        case .overwrite: "overwrite"
        case .rollback: "rollback"
        case .latestEdit: "latestEdit"
        case .custom: "custom"
        }
    }

    /// All policies except ``custom(_:)``. Tools accept their names, and list them in this order.
    public static let named: [MergePolicy] = [
        .error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback, .latestEdit,
    ]

    /// Makes the policy of a name; `nil` for an unknown name, and for `custom`.
    public init?(name: String) {
        guard let policy = Self.named.first(where: { $0.name == name }) else { return nil }
        self = policy
    }
}

/// A program's own rule for conflicts.
///
/// The result must depend on nothing but the versions that the rule is given. Otherwise devices end with different stores.
public struct MergeRule: Sendable {
    let field: @Sendable (FieldConflict) throws -> FieldValue?
    let deletion: @Sendable (DeletionConflict) throws -> Bool
    /// Returns whether the edit times of a field are compared even if its value is the earlier one.
    var weighsTimes: @Sendable (_ field: String) -> Bool = { _ in false }

    /// Makes a rule.
    ///
    /// - Parameters:
    ///   - field: Returns the value of a field that both sides changed.
    ///   - deletion: Returns whether a record stays that one side deleted and the other edited.
    public init(
        field: @escaping @Sendable (FieldConflict) throws -> FieldValue?,
        deletion: @escaping @Sendable (DeletionConflict) throws -> Bool = { _ in true }
    ) {
        self.field = field
        self.deletion = deletion
    }

    /// Returns a rule with a policy for each field. `error` fails the merge, `overwrite` takes the local value of the field, and
    /// `rollback` the store's.
    ///
    /// ```swift
    /// let policy = MergePolicy.custom(.byField(["visits": .custom(MergeRule { … })], otherwise: .latestEdit))
    /// ```
    public static func byField(
        _ policies: [String: MergePolicy], otherwise: MergePolicy = .mergeByPropertyObjectTrump
    ) -> MergeRule {
        var rule = MergeRule { conflict in
            try conflict.value(under: policies[conflict.field] ?? otherwise)
        }
        rule.weighsTimes = { (policies[$0] ?? otherwise).weighsTimes(of: $0) }
        return rule
    }
}
