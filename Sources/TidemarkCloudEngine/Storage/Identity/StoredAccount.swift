public import TidemarkCloud
public import TidemarkModel

/// An account of a cloud, as the cloud stores it.
public struct StoredAccount: Hashable, Sendable {
    /// The quota of an account of a served cloud, unless the operator sets another.
    public static let servedQuota: Int64 = 5_000_000_000

    /// A UUID that identifies the account in all containers. A container knows the account by a user record name instead.
    public let id: String
    /// The address, in lower case and in the normal form C of Unicode. Unique.
    public package(set) var email: String
    /// The phone number, digits after a plus sign. Unique where it is not `nil`.
    public var phone: String?
    /// The name that is shown to participants of the person's shares.
    public var name: PersonName?
    /// The bytes that the account may store in each container and environment.
    public var quota: Int64
    /// Whether the account can be used. With any status but `available`, calls throw `accountTemporarilyUnavailable` or
    /// `notAuthenticated`.
    public var status: CloudAccount.Status
    /// Whether others can find the person by an address, a phone number or a user record name.
    public var isDiscoverable: Bool

    package init(
        id: String, email: String, phone: String? = nil, name: PersonName? = nil, quota: Int64, status: CloudAccount.Status,
        isDiscoverable: Bool = false
    ) {
        (self.id, self.email, self.phone, self.name) = (id, email, phone, name)
        (self.quota, self.status, self.isDiscoverable) = (quota, status, isDiscoverable)
    }

    /// Returns whether two accounts differ at most in their addresses.
    package func isLike(_ other: StoredAccount) -> Bool {
        var other = other
        other.email = email
        return self == other
    }
}
