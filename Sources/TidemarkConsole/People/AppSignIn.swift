import Foundation
package import TidemarkCloudEngine
package import TidemarkIdentity

/// A signed statement that an identity provider has vouched for a person who signs in for a program. The pages of people get the
/// provider's answer, and send the browser with the statement to the program's sign-in page. The browser has the statement in a
/// cookie, for a minute.
package struct AppSignIn: Sendable {
    /// The text of the form of the sign-in page.
    package let form: String
    package let staysSignedIn: Bool
    package let key: IdentityKey
    /// The account of the identity, by its identifier.
    package let account: String

    /// The page that completes the sign-in.
    package static let path = "/signin/provider"
    private static let use = "provider-app"
    private static let patience: Int64 = 60_000_000

    init(form: String, staysSignedIn: Bool, key: IdentityKey, account: String) {
        (self.form, self.staysSignedIn, self.key, self.account) = (form, staysSignedIn, key, account)
    }

    /// - Returns: `nil` if a cookie has no statement, or it has expired.
    package init?(_ cookie: String, _ credentials: CredentialStore) throws {
        guard let payload = try credentials.open(cookie, for: Self.use),
            let text = String(validating: payload, as: UTF8.self)
        else { return nil }
        let parts = text.split(separator: "\0", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5 else { return nil }
        (form, staysSignedIn, account) = (parts[0], parts[1] == "1", parts[4])
        key = IdentityKey(issuer: parts[2], subject: parts[3])
    }

    func text(_ credentials: CredentialStore) -> String {
        let parts = [form, staysSignedIn ? "1" : "0", key.issuer, key.subject, account]
        return credentials.signedText(
            Data(parts.joined(separator: "\0").utf8), for: Self.use, until: credentials.time + Self.patience)
    }

    /// The name of the cookie.
    package static func cookieName(isSecure: Bool) -> String {
        isSecure ? "__Host-tidemark-app-sign-in" : "tidemark-app-sign-in"
    }

    /// The header that sets the cookie; with `nil`, the header that removes it. The cookie is Lax, because it is set on the way
    /// from the provider, and the next request has to bring it.
    package static func cookie(_ text: String?, isSecure: Bool) -> String {
        let secure = isSecure ? "; Secure" : ""
        return
            "\(cookieName(isSecure: isSecure))=\(text ?? ""); Path=/; Max-Age=\(text == nil ? 0 : 60); HttpOnly; SameSite=Lax\(secure)"
    }
}
