/// An upload of an asset that has begun.
public struct StoredUpload: Hashable, Sendable {
    /// The account whose quota it counts against.
    public let payer: String
    /// The account in whose storage the asset lies; empty for the public database.
    public let owner: String
    public let digest: String
    /// The account that sends it.
    public let user: String

    /// Bytes that an asset counts beside its content.
    public static let overhead: Int64 = 256

    package init(payer: String, owner: String, digest: String, user: String) {
        (self.payer, self.owner, self.digest, self.user) = (payer, owner, digest, user)
    }
}
