import TidemarkCloud

/// The proof that an account has signed in on this device before.
///
/// It gives no access. While many sign-ins of strangers wait, a server handles a sign-in with this proof first, whatever network
/// the device is in.
public struct CloudDevice: Hashable, Sendable {
    /// The server, the container and the environment of the proof. It is sent nowhere else.
    public let cloud: String
    /// The account's email address, in lower case. The proof is sent with this address only.
    public let email: String
    /// The secret of the proof.
    public let token: String
    /// The name of the device in lists of the account's sessions; `nil` if the user has not named it.
    public let name: String?

    /// The most bytes of a token.
    private static let tokenLengthMax = 1024
    /// The most bytes of an email address.
    private static let emailLengthMax = 320

    /// Makes a proof.
    ///
    /// - Returns: `nil` for a token or an address that is not valid.
    public init?(cloud: String, email: String, token: String, name: String? = nil) {
        guard CloudSession.isToken(token), token.utf8.count <= Self.tokenLengthMax else { return nil }
        let email = Self.address(email)
        guard (1...Self.emailLengthMax).contains(email.utf8.count) else { return nil }
        (self.cloud, self.email, self.token, self.name) = (cloud, email, token, name)
    }

    /// Whether the proof is for an account of a cloud.
    func isFor(_ cloud: String, _ email: String) -> Bool { self.cloud == cloud && self.email == Self.address(email) }

    private static func address(_ email: String) -> String { email.lowercased() }

    /// The most proofs that are kept in one place.
    private static let most = 4

    /// Returns the proofs to keep with a new one: the newest first, one for each account of a cloud.
    static func kept(_ new: CloudDevice, before others: [CloudDevice]) -> [CloudDevice] {
        [new] + others.filter { !$0.isFor(new.cloud, new.email) }.prefix(most - 1)
    }
}

extension CloudDevice: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The account and the cloud, without the token.
    public var description: String { "device of \(email) with \(cloud)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["cloud": cloud, "email": email]) }
}
