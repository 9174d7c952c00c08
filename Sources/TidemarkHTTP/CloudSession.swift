public import TidemarkCloud
import TidemarkModel

/// A session with a server: the right of a device to act for an account until the session expires or is ended.
public struct CloudSession: Hashable, Sendable {
    /// The server, the container and the environment of the session. It is sent nowhere else.
    public let cloud: String
    /// The account's name in the cloud container.
    public let userRecordName: String
    /// The secret of the session.
    public let token: String

    /// Makes a session.
    ///
    /// - Throws: `CloudError` `internalError` for a token or a name that is not valid.
    public init(cloud: String, userRecordName: String, token: String) throws(CloudError) {
        guard Self.isToken(token) else { throw CloudError(.internalError, "the server issued an invalid session token") }
        guard Self.isName(userRecordName) else {
            throw CloudError(.internalError, "the server issued an invalid account name")
        }
        self.cloud = cloud
        self.userRecordName = userRecordName
        self.token = token
    }

    /// The identifier of the session in lists of the server, 32 hexadecimal digits; `nil` for a token of another form. It is not
    /// secret: nobody can sign in with it.
    var identifier: String? {
        // A token begins with the identifier.
        guard let bytes = Base64URL.bytes(token), bytes.count == 64 else { return nil }
        return Hexadecimal.text(bytes[..<16])
    }

    /// Whether a text can be a token in a header.
    static func isToken(_ text: String) -> Bool {
        (1...4096).contains(text.utf8.count) && text.utf8.allSatisfy { (0x21...0x7e).contains($0) }
    }

    /// Whether a text can be an account's name: at most as long as a record's name, and without control characters.
    static func isName(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count)
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// Returns the session with a new token; `nil` for a token that is not valid.
    func renewed(_ token: String) -> CloudSession? {
        // The former token is still valid for some time.
        try? CloudSession(cloud: cloud, userRecordName: userRecordName, token: token)
    }
}

extension CloudSession: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The account and the cloud, without the token.
    public var description: String { "session of \(userRecordName) with \(cloud)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["cloud": cloud, "userRecordName": userRecordName]) }
}

/// A place that keeps a session.
public protocol SessionStore: Sendable {
    /// Returns the session that was kept last; `nil` when no account is signed in.
    ///
    /// - Throws: `CloudError` `notAuthenticated` when the stored session can't be trusted any more.
    func session() throws(CloudError) -> CloudSession?

    /// Keeps a session in place of the present one.
    func keep(_ session: CloudSession) throws(CloudError)

    /// Replaces a session by another. Does nothing if the old one is no longer the present one, because the user has signed out
    /// or in again.
    func replace(_ old: CloudSession, by new: CloudSession) throws(CloudError)

    /// Removes the present session.
    func remove() throws(CloudError)

    /// Removes a session. Does nothing if it is no longer the present one.
    func remove(_ session: CloudSession) throws(CloudError)

    /// Returns the proof that an account of a cloud has signed in on this device before; `nil` if there is none.
    func device(for cloud: String, email: String) -> CloudDevice?

    /// Keeps such a proof. It stays when the session is removed.
    func keep(_ device: CloudDevice) throws(CloudError)
}

extension SessionStore {
    /// Returns `nil`: while many sign-ins of strangers wait, a sign-in from a new network address waits with them.
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
