/// A server's turn to go through the contents of all owners of a container. It lasts until the server ends it, or does not renew it for some time.
public struct SweepClaim: Hashable, Sendable {
    /// How long a turn lasts that is not renewed. Its server has ended then, or can't reach the rows.
    public static let patience = Duration.seconds(900)

    /// The owner whose contents were swept last; `nil` where the turn begins with the first owner.
    public var last: String?
    /// When the turn began or was renewed, in microseconds since 1970 UTC by the storage's clock. The storage knows the claim by it.
    public let renewed: Int64

    /// Makes a claim.
    public init(last: String? = nil, renewed: Int64 = 0) { (self.last, self.renewed) = (last, renewed) }
}
