/// Whose records a database has, as in CloudKit; the raw values are `CKDatabase.Scope`'s.
public enum DatabaseScope: Int, Codable, CaseIterable, Sendable {
    /// Everybody's.
    case `public` = 1
    /// One's own.
    case `private` = 2
    /// What others share with one.
    case shared = 3

    public var name: String {
        switch self {
        case .public: "public"
        case .private: "private"
        case .shared: "shared"
        }
    }
}
