/// The owners whose rows a write transaction may change.
public struct WrittenOwners: Hashable, Sendable, ExpressibleByArrayLiteral {
    /// User record names, sorted and without repetitions, empty for the public database; `nil` for all owners.
    public let names: [String]?

    private init(names: [String]?) { self.names = names }

    /// Makes a set of some owners.
    public init(_ owners: some Sequence<String>) { names = Set(owners).sorted() }

    /// Makes a set of some owners. Without any, the transaction changes rows of the whole container alone.
    public init(arrayLiteral owners: String...) { self.init(owners) }

    /// All owners: for what an administrator does to a container as a whole.
    public static let all = WrittenOwners(names: nil)

    /// Returns whether rows of an owner may be changed.
    public func contains(_ owner: String) -> Bool { names?.contains(owner) ?? true }
}
