public import TidemarkModel

/// The databases of a cloud container that an account can use. As `CKContainer`'s databases.
public struct CloudDatabases: Sendable {
    /// The account's own records, including those that it shares.
    public let `private`: any SharingDatabase
    /// The records that others share with the account.
    public let shared: any SharingDatabase

    /// Makes the pair of databases.
    ///
    /// - Parameters:
    ///   - private: The database with the account's own records.
    ///   - shared: The database with the records that others share with the account.
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
