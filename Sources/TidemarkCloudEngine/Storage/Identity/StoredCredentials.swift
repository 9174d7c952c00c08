package import TidemarkModel

/// Containers, tokens, keys and the secret, in one committed state. Any request may need them.
///
/// It is a class, so that a reader that has decoded it recognises an unchanged state by its identity.
package final class StoredCredentials: Sendable {
    /// The containers that are served, with the times when they were added.
    package let containers: [String: Int64]
    package let tokens: [StoredAPIToken]
    package let keys: [StoredServerKey]
    /// The secret that signs everything: 32 bytes.
    package let secret: [UInt8]
    /// The previous secret, and the time until which its signatures are valid, in microseconds since 1970 UTC.
    package let previous: (secret: [UInt8], until: Int64)?

    package init(
        containers: [String: Int64], tokens: [StoredAPIToken], keys: [StoredServerKey], secret: [UInt8],
        previous: (secret: [UInt8], until: Int64)?
    ) {
        (self.containers, self.tokens, self.keys) = (containers, tokens, keys)
        (self.secret, self.previous) = (secret, previous)
    }
}

/// A row of an API token.
package struct StoredAPIToken: Hashable, Sendable {
    package let id: String
    /// SHA-256 of the token's text. Unique.
    package let digest: [UInt8]
    package let container: String
    package let environment: StoreEnvironment
    package let name: String
    /// Exactly one is set: the address to which the browser goes after a sign-in, or the origin of the window that gets the
    /// session.
    package let redirect, popup: String?
    package let origins: [String]
    package let made: Int64

    package init(
        id: String, digest: [UInt8], container: String, environment: StoreEnvironment, name: String, redirect: String?,
        popup: String?, origins: [String], made: Int64
    ) {
        (self.id, self.digest, self.container, self.environment) = (id, digest, container, environment)
        (self.name, self.redirect, self.popup, self.origins, self.made) = (name, redirect, popup, origins, made)
    }
}

/// A row of a server's key.
package struct StoredServerKey: Hashable, Sendable {
    package let id: String
    package let container: String
    package let environment: StoreEnvironment
    package let name: String
    package let account: String
    /// SubjectPublicKeyInfo in DER.
    package let publicKey: [UInt8]
    package let made: Int64

    package init(
        id: String, container: String, environment: StoreEnvironment, name: String, account: String, publicKey: [UInt8],
        made: Int64
    ) {
        (self.id, self.container, self.environment, self.name) = (id, container, environment, name)
        (self.account, self.publicKey, self.made) = (account, publicKey, made)
    }
}

/// What is stored of a password: its scrypt digest, with the parameters.
package struct StoredPassword: Hashable, Sendable {
    package let logN, r, p: Int64
    package let salt, digest: [UInt8]

    package init(logN: Int64, r: Int64, p: Int64, salt: [UInt8], digest: [UInt8]) {
        (self.logN, self.r, self.p, self.salt, self.digest) = (logN, r, p, salt, digest)
    }
}

/// A row of a session.
package struct StoredSession: Hashable, Sendable {
    /// 16 bytes.
    package let id: [UInt8]
    package let account, container: String
    package let environment: StoreEnvironment
    /// The kind of device that is signed in: `web`, `web-stay` or `device`.
    package let kind: String
    package let began: Int64
    /// When the row may go: microseconds since 1970 UTC.
    package var kept: Int64
    /// The device and its operating system, as the device named them; empty where it named none. A person may have renamed the
    /// device.
    package var device, system: String
    /// The last recorded use, in microseconds since 1970 UTC, and its address; 0 where it is not known.
    package var used: Int64
    package var address: String
    /// The account, if the storage has read it with the session. It is as new as the session.
    package var holder: StoredAccount?

    package init(
        id: [UInt8], account: String, container: String, environment: StoreEnvironment, kind: String, began: Int64, kept: Int64,
        device: String, system: String = "", used: Int64, address: String
    ) {
        (self.id, self.account, self.container, self.environment) = (id, account, container, environment)
        (self.kind, self.began, self.kept) = (kind, began, kept)
        (self.device, self.system, self.used, self.address) = (device, system, used, address)
    }
}

/// A use of a session.
package struct SessionUse: Hashable, Sendable {
    package let session: [UInt8]
    /// Microseconds since 1970 UTC.
    package let at: Int64
    package let address: String

    package init(session: [UInt8], at: Int64, address: String) {
        (self.session, self.at, self.address) = (session, at, address)
    }
}

/// The content of an audit log entry, without its number and time. Each text is one short line, except the values.
package struct StoredAuditEvent: Hashable, Sendable {
    package var action, actor, account, address, container, subject, outcome: String
    /// The values before and after a change; empty where the action has none.
    package var before, after: String

    package init(
        action: String, actor: String, account: String, address: String, container: String, subject: String, outcome: String,
        before: String = "", after: String = ""
    ) {
        (self.action, self.actor, self.account, self.address) = (action, actor, account, address)
        (self.container, self.subject, self.outcome) = (container, subject, outcome)
        (self.before, self.after) = (before, after)
    }
}

/// An entry of the audit log.
package struct AuditLogEntry: Hashable, Sendable {
    /// Grows with each entry.
    package let number: Int64
    package let at: Int64
    package let event: StoredAuditEvent

    package init(number: Int64, at: Int64, event: StoredAuditEvent) {
        (self.number, self.at, self.event) = (number, at, event)
    }
}
