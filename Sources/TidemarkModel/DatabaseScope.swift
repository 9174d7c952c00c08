/// The scope of a cloud's database, as `CKDatabase.Scope`, whose raw values it has. A container's stores have a ``StoreScope``.
public enum DatabaseScope: Int, Codable, CaseIterable, Sendable {
    /// Everybody's.
    case `public` = 1
    /// One's own.
    case `private` = 2
    /// What others share with one.
    case shared = 3

    /// The scope in lower case, as paths of CloudKit Web Services have it.
    public var name: String {
        switch self {
        case .public: "public"
        case .private: "private"
        case .shared: "shared"
        }
    }
}
