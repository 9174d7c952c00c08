public import TidemarkCloud
import TidemarkModel

/// What a served cloud knows a device by: it has the account's rights until it expires or is ended.
public struct CloudSession: Hashable, Sendable {
    /// The server, the container and the environment that it is for. It is sent nowhere else.
    public let cloud: String
    /// The account's name in the cloud container.
    public let userRecordName: String
    /// A secret.
    public let token: String

    /// - Throws: `CloudError` `internalError` for a token, or a name, that can be none.
    public init(cloud: String, userRecordName: String, token: String) throws(CloudError) {
        guard Self.isToken(token) else { throw CloudError(.internalError, "the server issued an invalid session token") }
        guard Self.isName(userRecordName) else {
            throw CloudError(.internalError, "the server issued an invalid account name")
        }
        self.cloud = cloud
        self.userRecordName = userRecordName
        self.token = token
    }

    /// The name of the session in lists of the server, 32 hexadecimal digits; `nil` for a token of another kind. It is no secret: nobody can sign
    /// in with it.
    var identifier: String? {
        // A token begins with it.
        guard let bytes = Base64URL.bytes(token), bytes.count == 64 else { return nil }
        return Hexadecimal.text(bytes[..<16])
    }

    /// Whether a text can stand in a header.
    static func isToken(_ text: String) -> Bool {
        (1...4096).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    /// Whether a text can be an account's name: as long as a record's, and without what can't be shown.
    static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// The same, with the token that has come in the place of the other.
    func renewed(_ token: String) -> CloudSession? {
        // A token that can be none is not kept: the one before is good for some time.
        try? CloudSession(cloud: cloud, userRecordName: userRecordName, token: token)
    }
}

extension CloudSession: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Without the token.
    public var description: String { "session of \(userRecordName) with \(cloud)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["cloud": cloud, "userRecordName": userRecordName]) }
}

/// Where a session is kept.
public protocol SessionStore: Sendable {
    /// What was kept last; `nil` when no account is signed in.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when it can't be trusted any more.
    func session() throws(CloudError) -> CloudSession?

    /// Keeps a session in the place of another.
    func keep(_ session: CloudSession) throws(CloudError)

    /// Keeps a session in the place of that one; does nothing when it has gone already: somebody has signed out, or in anew.
    func replace(_ old: CloudSession, by new: CloudSession) throws(CloudError)

    /// Forgets whatever is kept.
    func remove() throws(CloudError)

    /// Forgets that one; does nothing when another has come in its place.
    func remove(_ session: CloudSession) throws(CloudError)

    /// What shows that an account of a cloud was signed in to here before; `nil` where nothing does.
    func device(for cloud: String, email: String) -> CloudDevice?

    /// Keeps that, also when no account is signed in any more.
    func keep(_ device: CloudDevice) throws(CloudError)
}

extension SessionStore {
    /// Returns `nil`: then a sign-in from a new address waits with those of strangers, while there are many.
    public func device(for cloud: String, email: String) -> CloudDevice? { nil }
    /// Keeps nothing.
    public func keep(_ device: CloudDevice) throws(CloudError) {}
}

/// Keeps a session as long as the process runs.
public final class SessionMemory: SessionStore {
    private let kept: LockedValue<CloudSession?>
    private let devices = LockedValue<[CloudDevice]>([])

    /// Makes a store that holds a session, or none.
    public init(_ session: CloudSession? = nil) { kept = LockedValue(session) }

    /// Returns the session; `nil` without one.
    public func session() -> CloudSession? { kept.withLock { $0 } }
    /// Keeps a session in place of the present one.
    public func keep(_ session: CloudSession) { kept.withLock { $0 = session } }
    /// Replaces a session if it is still the present one.
    public func replace(_ old: CloudSession, by new: CloudSession) { kept.withLock { if $0 == old { $0 = new } } }
    /// Removes the session.
    public func remove() { kept.withLock { $0 = nil } }
    /// Removes a session if it is still the present one.
    public func remove(_ session: CloudSession) { kept.withLock { if $0 == session { $0 = nil } } }

    /// Returns the device's proof of an earlier sign-in; `nil` without one.
    public func device(for cloud: String, email: String) -> CloudDevice? {
        devices.withLock { $0.first { $0.isFor(cloud, email) } }
    }

    /// Keeps the device's proof of a sign-in.
    public func keep(_ device: CloudDevice) { devices.withLock { $0 = CloudDevice.kept(device, before: $0) } }
}
