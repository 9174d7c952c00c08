package import TidemarkCloudEngine
import TidemarkModel

/// An identity at an identity provider that signs in to an account.
package struct Identity: Hashable, Identifiable, Sendable {
    package let key: IdentityKey
    /// The account, by its identifier.
    package let account: String
    /// The identity's name for people, such as an address.
    package let label: String
    /// When it was connected: microseconds since 1970 UTC.
    package let added: Int64

    init(_ row: StoredIdentity) { (key, account, label, added) = (row.key, row.account, row.label, row.added) }

    /// The identity's name in forms: 32 hexadecimal digits.
    package var id: String { key.id }
}

extension IdentityKey {
    /// The identity's name in forms and in the audit log. Issuer and subject can't be computed from it.
    package var id: String {
        Hexadecimal.text(Array(Digest.sha256(Array("identity\0\(issuer)\0\(subject)".utf8)).prefix(16)))
    }

    /// Whether issuer and subject can be those of a provider: one line each, and short enough for a page.
    package var isWellFormed: Bool {
        func isLine(_ text: String, _ most: Int) -> Bool {
            (1...most).contains(text.utf8.count)
                && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        }
        // OpenID Connect Core 1.0, section 2, allows a subject 255 characters of ASCII.
        return isLine(issuer, 1_000) && isLine(subject, 255)
    }
}

/// The result of connecting an identity with an account.
package enum IdentityConnection: Hashable, Sendable {
    case connected
    /// The identity was connected with the account already.
    case isConnected
    /// The identity signs in to another account.
    case isAnothers
    /// The account has as many identities as it may have.
    case tooMany
}
