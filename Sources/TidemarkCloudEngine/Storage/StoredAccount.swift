import TidemarkCloud
import TidemarkModel

/// An account of a cloud, as the cloud stores it.
public struct StoredAccount: Hashable, Sendable {
    /// The quota of an account of a served cloud, unless the operator sets another.
    public static let servedQuota: Int64 = 5_000_000_000

    public let id: String
    public let email: String
    /// Digits after a plus sign.
    public var phone: String?
    /// The name that is shown to participants of the person's shares.
    public var name: PersonName?
    /// The most bytes that it may store in each container and environment.
    public var quota: Int64
    public var status: CloudAccount.Status
    /// Whether others can find the person by an address or a number.
    public var isDiscoverable: Bool

    package init(
        id: String, email: String, phone: String? = nil, name: PersonName? = nil, quota: Int64, status: CloudAccount.Status,
        isDiscoverable: Bool = false
    ) {
        (self.id, self.email, self.phone, self.name) = (id, email, phone, name)
        (self.quota, self.status, self.isDiscoverable) = (quota, status, isDiscoverable)
    }
}
