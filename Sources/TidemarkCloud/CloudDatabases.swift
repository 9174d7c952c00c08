import TidemarkModel

/// What an account has of a cloud container. As `CKContainer`'s databases.
public struct CloudDatabases: Sendable {
    /// One's own records, shared ones among them.
    public let `private`: any SharingDatabase
    /// What others share with one.
    public let shared: any SharingDatabase

    public init(private: any SharingDatabase, shared: any SharingDatabase) {
        self.private = `private`
        self.shared = shared
    }

    /// The database that the store of a scope synchronises with.
    public subscript(scope: StoreScope) -> any SharingDatabase {
        switch scope {
        case .private: `private`
        case .shared: shared
        }
    }
}
