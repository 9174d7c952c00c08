import Foundation
import TidemarkIdentity
package import TidemarkOpenID

/// The identity provider with which people sign in to pages.
package final class PeopleProvider: Sendable {
    let client: OpenIDClient
    /// The address to which the provider sends browsers, which is registered there. It never depends on a request.
    package let redirectURI: String

    /// - Parameter serverURL: The server's address for people, without a slash at the end.
    package init(_ client: OpenIDClient, serverURL: String) {
        (self.client, redirectURI) = (client, Self.redirectURI(serverURL))
    }

    /// The address to which a provider sends browsers of a server.
    ///
    /// - Parameter serverURL: The server's address for people, without a slash at the end.
    package static func redirectURI(_ serverURL: String) -> String {
        serverURL + Address(["callback"], under: Address.peopleRoot).text
    }

    /// The provider's name for people.
    var name: String { client.provider.name }

    /// The page that begins a sign-in at the provider.
    static func address(to: String = "") -> Address {
        Address(["provider"], under: Address.peopleRoot).with("to", to.isEmpty ? nil : to)
    }
}

/// A sign-in at an identity provider that has begun in a browser. The browser has it in a signed cookie, for ten minutes. No
/// server stores it, so the provider's answer may come to any server.
struct ProviderSignIn {
    /// The purpose of the sign-in.
    enum Purpose: Hashable {
        /// To sign in to the person's own pages, and to go to one of them, or to the page of a link.
        case pages(to: String)
        /// To sign in for a program, by the text of the form of the sign-in page.
        case app(form: String, staysSignedIn: Bool)
        /// To connect the identity with the account of a session.
        case connect(session: String)
        /// To confirm an action in a session, and to go to a page.
        case confirm(session: String, to: String)
    }

    let secret: SignInSecret
    let purpose: Purpose
    /// Microseconds since 1970 UTC.
    let began: Int64

    /// The time within which the answer has to come: microseconds.
    static let patience: Int64 = 10 * 60_000_000
    /// The most bytes of a text in the cookie.
    private static let textSize = 1_500

    /// - Returns: `nil` if a text of the purpose is too long.
    init?(_ purpose: Purpose, at time: Int64) {
        (secret, self.purpose, began) = (SignInSecret(), purpose, time)
        guard purpose.parts.allSatisfy({ $0.utf8.count <= Self.textSize && !$0.contains("\0") }) else { return nil }
    }

    /// - Returns: `nil` if the bytes are no sign-in.
    init?(_ payload: Data) {
        let numbers = SignInSecret.size + 8
        guard payload.count > numbers, let secret = SignInSecret(payload.prefix(SignInSecret.size)),
            let text = String(validating: payload.dropFirst(numbers), as: UTF8.self),
            let purpose = Purpose(text.split(separator: "\0", omittingEmptySubsequences: false).map(String.init))
        else { return nil }
        (self.secret, self.purpose) = (secret, purpose)
        began = payload.dropFirst(SignInSecret.size).prefix(8).reduce(0) { $0 << 8 | Int64($1) }
    }

    var payload: Data {
        Data(secret.bytes) + withUnsafeBytes(of: began.bigEndian) { Data($0) } + Data(purpose.parts.joined(separator: "\0").utf8)
    }

    // The cookie

    private static let use = "provider-sign-in"

    static func cookieName(_ request: ConsoleRequest) -> String {
        request.isSecure ? "__Host-tidemark-provider" : "tidemark-provider"
    }

    /// The header that sets the cookie. It is Lax, because it has to come back with the provider's redirect, which is from
    /// another site.
    func cookie(_ request: ConsoleRequest, _ credentials: CredentialStore) -> String {
        let text = credentials.signedText(payload, for: Self.use, until: began + Self.patience)
        return Self.cookie(text, seconds: Self.patience / 1_000_000, request)
    }

    /// The header that removes the cookie.
    static func noCookie(_ request: ConsoleRequest) -> String { cookie("", seconds: 0, request) }

    private static func cookie(_ text: String, seconds: Int64, _ request: ConsoleRequest) -> String {
        let secure = request.isSecure ? "; Secure" : ""
        return "\(cookieName(request))=\(text); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=Lax\(secure)"
    }

    /// The sign-in that a browser has begun; `nil` if there is none, or it has expired.
    static func ofBrowser(_ request: ConsoleRequest, _ credentials: CredentialStore) throws -> ProviderSignIn? {
        guard let text = request.cookie(cookieName(request)) else { return nil }
        return try credentials.open(text, for: use).flatMap { ProviderSignIn($0) }
    }
}

extension ProviderSignIn.Purpose {
    fileprivate var parts: [String] {
        switch self {
        case .pages(let to): ["pages", to]
        case .app(let form, let staysSignedIn): ["app", form, staysSignedIn ? "1" : "0"]
        case .connect(let session): ["connect", session]
        case .confirm(let session, let to): ["confirm", session, to]
        }
    }

    fileprivate init?(_ parts: [String]) {
        switch (parts.first, parts.count) {
        case ("pages", 2): self = .pages(to: parts[1])
        case ("app", 3): self = .app(form: parts[1], staysSignedIn: parts[2] == "1")
        case ("connect", 2): self = .connect(session: parts[1])
        case ("confirm", 3): self = .confirm(session: parts[1], to: parts[2])
        default: return nil
        }
    }
}
