/// An upload of an asset in several pieces that has begun and reserves room. All four members together identify it.
public struct StoredUpload: Hashable, Sendable {
    /// The account whose quota the asset counts against.
    public let payer: String
    /// The account whose asset it will be; empty for the public database.
    public let owner: String
    /// The SHA-256 of the whole content, 64 lowercase hexadecimal digits.
    public let digest: String
    /// The account that sends it.
    public let user: String

    /// The bytes that an asset counts against a quota beside its content.
    public static let overhead: Int64 = 256

    package init(payer: String, owner: String, digest: String, user: String) {
        (self.payer, self.owner, self.digest, self.user) = (payer, owner, digest, user)
    }
}
