/// What becomes of a field that was changed on both sides, as in Core Data.
///
/// *Local* is the edit that is being saved, *store* what the store (or the server) has by then, *ancestor* what both began with. A field
/// that changed on one side only takes that side, whatever the policy, except under ``overwrite`` and ``rollback``, which take a whole
/// record.
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
    /// The later edit of the field; see ``EditTime``. What was changed and changed back is edited, and so is what both sides changed alike.
    case latestEdit
    /// A rule of one's own.
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

    /// The policies that a name stands for, all but ``custom(_:)``. Tools accept these names, and list them in this order.
    public static let named: [MergePolicy] = [
        .error, .mergeByPropertyStoreTrump, .mergeByPropertyObjectTrump, .overwrite, .rollback, .latestEdit,
    ]

    /// The policy of that name; `nil` for none, and for `custom`.
    public init?(name: String) {
        guard let policy = Self.named.first(where: { $0.name == name }) else { return nil }
        self = policy
    }
}

/// A rule for conflicts that a program brings along.
///
/// For devices to end with equal stores it must depend on nothing but the versions that it is given.
public struct MergeRule: Sendable {
    let field: @Sendable (FieldConflict) throws -> FieldValue?
    let deletion: @Sendable (DeletionConflict) throws -> Bool
    /// Whether it matters when a field was edited, whatever it was before.
    var weighsTimes: @Sendable (_ field: String) -> Bool = { _ in false }

    /// - Parameters:
    ///   - field: The value of a field that both sides changed.
    ///   - deletion: Whether a record stays that one side deleted and the other edited.
    public init(
        field: @escaping @Sendable (FieldConflict) throws -> FieldValue?,
        deletion: @escaping @Sendable (DeletionConflict) throws -> Bool = { _ in true }
    ) {
        self.field = field
        self.deletion = deletion
    }

    /// Another policy for each of some fields; `error`, `overwrite` and `rollback` stand for what they mean for a field.
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
