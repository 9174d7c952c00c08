/// The scope of a cloud's database. As `CKDatabase.Scope`, with the same raw values. A container's stores have a ``StoreScope``.
public enum DatabaseScope: Int, Codable, CaseIterable, Sendable {
    /// The database that all accounts share.
    case `public` = 1
    /// The account's own records.
    case `private` = 2
    /// The records that other accounts share with this account.
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
