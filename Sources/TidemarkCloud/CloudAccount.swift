/// Whether a cloud can be used, and by whom.
public struct CloudAccount: Hashable, Codable, Sendable {
    /// As `CKAccountStatus`.
    public enum Status: String, Codable, Sendable {
        case available, noAccount, restricted, couldNotDetermine, temporarilyUnavailable
    }

    public var status: Status
    /// The account's name in this cloud container; `nil` where there is none.
    public var userRecordName: String?
    /// Bytes that the account may have in all, and has.
    public var quota: Int64?
    public var used: Int64?

    public init(status: Status, userRecordName: String? = nil, quota: Int64? = nil, used: Int64? = nil) {
        self.status = status
        self.userRecordName = userRecordName
        self.quota = quota
        self.used = used
    }
}
