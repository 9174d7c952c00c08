import TidemarkCloudEngine
import TidemarkModel

// Conversions between stored rows and values.

extension Session.Kind {
    /// The text that is stored for the kind. A stored text never gets another meaning.
    var stored: String {
        switch self {
        case .web(staysSignedIn: false): "web"
        case .web(staysSignedIn: true): "web-stay"
        case .device: "device"
        }
    }

    init(stored: String) throws(CredentialError) {
        switch stored {
        case "web": self = .web(staysSignedIn: false)
        case "web-stay": self = .web(staysSignedIn: true)
        case "device": self = .device
        default: throw CredentialError(damaged: "kind of session")
        }
    }
}

extension APIToken {
    init(_ row: StoredAPIToken) throws(CredentialError) {
        let callback: SignInCallback
        switch (row.redirect, row.popup) {
        case (let redirect?, nil): callback = .redirect(redirect)
        case (nil, let popup?): callback = .popup(origin: popup)
        default: throw CredentialError(damaged: "callback")
        }
        self.init(
            id: row.id, container: row.container, environment: row.environment, name: row.name, callback: callback,
            origins: row.origins, made: row.made)
    }

    func stored(digest: [UInt8]) -> StoredAPIToken {
        let (redirect, popup): (String?, String?) =
            switch callback {
            case .redirect(let address): (address, nil)
            case .popup(let origin): (nil, origin)
            }
        return StoredAPIToken(
            id: id, digest: digest, container: container, environment: environment, name: name, redirect: redirect, popup: popup,
            origins: origins, made: made)
    }
}

extension ServerKey {
    init(_ row: StoredServerKey) throws(CredentialError) {
        self.init(
            id: row.id, container: row.container, environment: row.environment, name: row.name, account: row.account,
            made: row.made, publicKey: try PublicKey(der: row.publicKey))
    }

    var stored: StoredServerKey {
        StoredServerKey(
            id: id, container: container, environment: environment, name: name, account: account, publicKey: publicKey.der,
            made: made)
    }
}

extension PasswordHash {
    init(_ row: StoredPassword) throws(CredentialError) {
        self.init(cost: Cost(logN: row.logN, r: row.r, p: row.p), salt: row.salt, digest: row.digest)
        guard cost.isBounded else { throw CredentialError(damaged: "cost of a password") }
    }

    var stored: StoredPassword { StoredPassword(logN: cost.logN, r: cost.r, p: cost.p, salt: salt, digest: digest) }
}

extension AuditEntry {
    init(_ row: AuditLogEntry) {
        let event = row.event
        self.init(
            id: row.number, at: row.at,
            event: AuditEvent(
                .init(rawValue: event.action), actor: event.actor, account: event.account, address: event.address,
                container: event.container, subject: event.subject, outcome: event.outcome, before: event.before,
                after: event.after))
    }
}

extension AuditEvent {
    /// The event with each text as one line, because some texts come from clients.
    var stored: StoredAuditEvent {
        StoredAuditEvent(
            action: action.rawValue, actor: CredentialStore.line(actor), account: CredentialStore.line(account),
            address: CredentialStore.line(address), container: CredentialStore.line(container),
            subject: CredentialStore.line(subject), outcome: CredentialStore.line(outcome), before: Self.value(before),
            after: Self.value(after))
    }
}

extension AuditEvent {
    /// A value as the log keeps it: at most 4,000 bytes, without U+0000, and with a mark where it was longer.
    private static func value(_ text: String) -> String {
        guard text.utf8.count > 4_000 || text.utf8.contains(0) else { return text }
        var kept = ""
        for scalar in text.unicodeScalars where scalar.value != 0 {
            guard kept.utf8.count + UTF8.width(scalar) <= 4_000 else { return kept + "…" }
            kept.unicodeScalars.append(scalar)
        }
        return kept
    }
}

/// A session's row with its decoded kind.
struct SessionRow: Sendable {
    let row: StoredSession
    let kind: Session.Kind

    init(_ row: StoredSession) throws(CredentialError) {
        self.row = row
        kind = try Session.Kind(stored: row.kind)
    }

    func session(issued: Int64, expires: Int64) -> Session {
        Session(
            id: Hexadecimal.text(row.id), account: row.account, container: row.container, environment: row.environment,
            kind: kind, began: row.began, device: row.device, system: row.system, used: row.used, address: row.address,
            issued: issued, expires: expires, holder: row.holder)
    }

    /// When the session's last token expires, as far as the row tells. A later use, which was not noted, may have given out a
    /// newer one.
    var until: Int64 { row.used == 0 ? row.kept : min(row.kept, row.used + kind.lifetime) }
}
