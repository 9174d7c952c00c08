/// A store of a container: the private one, or the one for records that others share.
///
/// A container has no public store, so that a record can't be saved there by mistake. ``DatabaseScope`` names the databases of a cloud, of which
/// the public one is the third.
///
/// ```swift
/// let newest = journal.history(.shared)
/// ```
public enum StoreScope: Int, Codable, CaseIterable, Hashable, Sendable {
    // The raw values are `CKDatabase.Scope`'s, and are stored.
    /// The user's own records.
    case `private` = 2
    /// The records that others share with the user.
    case shared = 3

    /// The name of the scope, and of its database file without the extension.
    public var name: String { databaseScope.name }

    /// The database of a cloud with which a store of this scope synchronises.
    public var databaseScope: DatabaseScope {
        switch self {
        case .private: .private
        case .shared: .shared
        }
    }

    /// Makes the scope of a name; `nil` for any other name.
    public init?(name: String) {
        guard let scope = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = scope
    }

    /// Makes the scope of the store that synchronises with a database; `nil` for the public database, which no store synchronises with.
    public init?(_ scope: DatabaseScope) {
        switch scope {
        case .private: self = .private
        case .shared: self = .shared
        case .public: return nil
        }
    }
}

/// In JSON a scope is its name.
extension StoreScope {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let name = try container.decode(String.self)
        guard let scope = Self(name: name) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no store is called '\(name)'")
        }
        self = scope
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(name)
    }
}
