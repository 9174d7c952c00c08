/// The account that uses a cloud, and whether it can.
public struct CloudAccount: Hashable, Codable, Sendable {
    /// The status of an account. As `CKAccountStatus`.
    public enum Status: String, Codable, Sendable {
        /// Whether the account can be used, or why not. The names are `CKAccountStatus`'s.
        case available, noAccount, restricted, couldNotDetermine, temporarilyUnavailable
    }

    /// Whether the account can be used.
    public var status: Status
    /// The account's name in this cloud container; `nil` where there is none.
    public var userRecordName: String?
    /// Bytes that the account may store; `nil` where the cloud does not say.
    public var quota: Int64?
    /// Bytes that the account's data takes; `nil` where the cloud does not say.
    public var used: Int64?

    /// Makes a description of an account.
    ///
    /// - Parameters:
    ///   - status: Whether the account can be used.
    ///   - userRecordName: The account's name in the cloud container.
    ///   - quota: Bytes that the account may store.
    ///   - used: Bytes that the account stores.
    public init(status: Status, userRecordName: String? = nil, quota: Int64? = nil, used: Int64? = nil) {
        self.status = status
        self.userRecordName = userRecordName
        self.quota = quota
        self.used = used
    }
}
