import TidemarkCloudEngine
import TidemarkModel

/// An entry of a served cloud's audit log: an action, who did it, to what, when, from where, and how it ended.
public struct AuditEntry: Hashable, Identifiable, Sendable {
    /// Grows with each entry.
    public let id: Int64
    /// When it happened: microseconds since 1970 UTC.
    public let at: Int64
    /// What happened.
    public let event: AuditEvent

    package init(id: Int64, at: Int64, event: AuditEvent) { (self.id, self.at, self.event) = (id, at, event) }
}

/// The content of an ``AuditEntry``, without its time.
public struct AuditEvent: Hashable, Sendable {
    /// A kind of action; more may come.
    public struct Action: RawRepresentable, Hashable, Sendable {
        /// The action's name, as the audit log and `tidemark admin audit` have it.
        public let rawValue: String
        /// Makes an action from its name, known to this version or not.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// A device or a browser signed in.
        public static let signIn = Action(rawValue: "sign-in")
        /// A session was ended.
        public static let signOut = Action(rawValue: "sign-out")
        /// A share was made.
        public static let shareCreate = Action(rawValue: "share.create")
        /// A share's participants or permissions were changed.
        public static let shareChange = Action(rawValue: "share.change")
        /// A share was deleted.
        public static let shareDelete = Action(rawValue: "share.delete")
        /// A link to a share was made.
        public static let linkMake = Action(rawValue: "share.link.make")
        /// A link to a share was revoked.
        public static let linkRevoke = Action(rawValue: "share.link.revoke")
        /// A link to a share was accepted.
        public static let linkAccept = Action(rawValue: "share.accept")
        /// A link to a share was declined.
        public static let linkDecline = Action(rawValue: "share.decline")
        /// An account allowed or forbade that other accounts find it.
        public static let discoverable = Action(rawValue: "account.discoverable")

        /// An operator signed in to the console.
        public static let consoleSignIn = Action(rawValue: "console.sign-in")
        /// An operator signed out of the console.
        public static let consoleSignOut = Action(rawValue: "console.sign-out")
        /// A session of the console was asked for the operator's password again, and got a wrong one.
        public static let consoleConfirm = Action(rawValue: "console.confirm")

        /// A person signed in to the pages of their own account.
        public static let accountSignIn = Action(rawValue: "account.sign-in")
        /// A person's pages asked for the password again, and got a wrong one.
        public static let accountConfirm = Action(rawValue: "account.confirm")
        /// A person signed out of the pages of their own account.
        public static let accountSignOut = Action(rawValue: "account.sign-out")

        /// An action of a person on their own account, such as `account.password`.
        public static func own(_ what: String) -> Action { Action(rawValue: "account.\(what)") }

        /// An action of `tidemark admin`, such as `admin.account.add`.
        public static func administration(_ command: String) -> Action { Action(rawValue: "admin.\(command)") }
    }

    /// The action.
    public var action: Action
    /// The person who did it: an account's identifier, or `user:` and the name of a system's user for administration; empty if
    /// the person is not known.
    public var actor: String
    /// The account that it concerns, by its identifier; empty when there is none.
    public var account: String
    /// The client's address as limits count it (``NetworkAddress/host``); empty for administration by commands.
    public var address: String
    /// The container and its environment; empty where the action concerns none.
    public var container: String
    /// The object of the action, such as a share's record or a token's identifier.
    public var subject: String
    /// `done`, or the code of the error.
    public var outcome: String
    /// The value before a change of administration; empty where the action has no such value.
    public var before: String
    /// The value after the change.
    public var after: String

    /// Makes an event; the audit log adds its time.
    public init(
        _ action: Action, actor: String = "", account: String = "", address: String = "", container: String = "",
        subject: String = "", outcome: String = "done", before: String = "", after: String = ""
    ) {
        (self.action, self.actor, self.account, self.address) = (action, actor, account, address)
        (self.container, self.subject, self.outcome) = (container, subject, outcome)
        (self.before, self.after) = (before, after)
    }
}

extension AuditEvent {
    private static let byIdentity = "identity "

    /// Makes the text of ``after`` for a sign-in: `Anna's phone`, or `Anna's phone, identity 3f…` for a sign-in with an identity.
    static func text(ofSignInOn device: String, with key: IdentityKey? = nil) -> String {
        guard let key else { return device }
        return (device.isEmpty ? "" : "\(device), ") + byIdentity + key.id
    }

    /// The name of the device in such a text; empty where it has none.
    static func device(ofSignIn text: String) -> String {
        guard !text.hasPrefix(byIdentity) else { return "" }
        return text.ranges(of: ", \(byIdentity)").last.map { String(text[..<$0.lowerBound]) } ?? text
    }
}
