import TidemarkCloud

/// What shows to a served cloud that an account was signed in to on this device before.
///
/// It lets nobody in. A sign-in that shows it does not wait for those of strangers, wherever the device is by then.
public struct CloudDevice: Hashable, Sendable {
    /// The server, the container and the environment that it is for. It is sent nowhere else.
    public let cloud: String
    /// The account's address, in lower case. It is sent with no other.
    public let email: String
    /// A secret.
    public let token: String
    /// What lists of the account's sessions call the device; `nil` where nobody has named it.
    public let name: String?

    /// More than any has.
    private static let tokenLengthMax = 1024
    /// More than an address has.
    private static let emailLengthMax = 320

    /// - Returns: `nil` for a token, or an address, that can be none.
    public init?(cloud: String, email: String, token: String, name: String? = nil) {
        guard CloudSession.isToken(token), token.utf8.count <= Self.tokenLengthMax else { return nil }
        let email = Self.address(email)
        guard (1...Self.emailLengthMax).contains(email.utf8.count) else { return nil }
        (self.cloud, self.email, self.token, self.name) = (cloud, email, token, name)
    }

    /// Whether it is for an account of a cloud.
    func isFor(_ cloud: String, _ email: String) -> Bool { self.cloud == cloud && self.email == Self.address(email) }

    private static func address(_ email: String) -> String { email.lowercased() }

    /// How many are kept in one place.
    private static let most = 4

    /// Those that are kept once another is: the newest first, one for an account of a cloud.
    static func kept(_ new: CloudDevice, before others: [CloudDevice]) -> [CloudDevice] {
        [new] + others.filter { !$0.isFor(new.cloud, new.email) }.prefix(most - 1)
    }
}

extension CloudDevice: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Without the token.
    public var description: String { "device of \(email) with \(cloud)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["cloud": cloud, "email": email]) }
}
