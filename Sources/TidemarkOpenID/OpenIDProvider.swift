package import Foundation
import TidemarkCloud
import TidemarkHTTP

/// An identity provider, and as whom this server is registered there.
package struct OpenIDProvider: Sendable {
    /// The address that the provider calls itself. It is compared as it stands.
    package let issuer: String
    package let clientID: String
    /// What this server shows as the client; `nil` where it is registered as one without a secret.
    package let clientSecret: String?
    /// What people know the provider by.
    package let name: String
    /// Whether an identity that is connected with no account gets a new one.
    package let signsUp: Bool
    /// From whom the certificates of the provider may be.
    let trustRoots: TrustRoots

    /// - Parameters:
    ///   - issuer: The address that the provider calls itself; `http` only on this machine.
    ///   - clientID: As the provider has given it out.
    ///   - clientSecret: As the provider has given it out; `nil` for none.
    ///   - name: What people know the provider by; the host's name by default.
    ///   - signsUp: Whether an identity that is connected with no account gets a new one.
    ///   - authorities: A file of certificates in PEM, of whom that of the provider is; `nil` for those that this machine trusts.
    /// - Throws: ``OpenIDError`` `invalid`.
    package init(
        _ issuer: String, clientID: String, clientSecret: String? = nil, name: String? = nil, signsUp: Bool = false,
        authorities: URL? = nil
    ) throws(OpenIDError) {
        guard let address = ProviderAddress(issuer), !address.hasQuery else {
            throw OpenIDError(
                .invalid,
                "'\(OpenIDError.shown(issuer))' is no identity provider: take the address that it calls itself, as "
                    + "https://id.example.org")
        }
        func isLine(_ text: String, _ most: Int) -> Bool {
            (1...most).contains(text.utf8.count)
                && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        }
        guard isLine(clientID, 500) else {
            throw OpenIDError(.invalid, "the identity provider's client has 1 to 500 bytes, in one line")
        }
        let name = name ?? address.host
        guard isLine(name, 100) else {
            throw OpenIDError(.invalid, "the identity provider's name has 1 to 100 bytes, in one line")
        }
        (self.issuer, self.clientID, self.clientSecret, self.name) = (issuer, clientID, clientSecret, name)
        self.signsUp = signsUp
        do throws(CloudError) {
            if let authorities { trustRoots = try TrustRoots(contentsOf: authorities) } else { trustRoots = .system }
        } catch {
            throw OpenIDError(.invalid, error.reason)
        }
    }

    /// Where the provider says what it is (OpenID Connect Discovery 1.0, section 4).
    var configurationAddress: String {
        "\(issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer)/.well-known/openid-configuration"
    }
}

/// An address of a provider: encrypted, or on this machine, and with no character that an attribute or a header would take for its end.
struct ProviderAddress: Hashable, Sendable {
    let text: String
    let host: String
    let isSecure: Bool
    let hasQuery: Bool

    /// - Returns: `nil` for what is no such address.
    init?(_ text: String) {
        let allowed = Set("-._~:/?[]@!$&()*+,;=%".utf8)
        guard (1...1_000).contains(text.utf8.count),
            text.utf8.allSatisfy({
                (0x30...0x39).contains($0) || (0x41...0x5a).contains($0) || (0x61...0x7a).contains($0) || allowed.contains($0)
            }),
            let parts = URLComponents(string: text), let host = parts.host, !host.isEmpty, parts.user == nil,
            parts.password == nil, parts.fragment == nil, parts.port.map({ (1...65_535).contains($0) }) ?? true
        else { return nil }
        switch parts.scheme {
        case "https": isSecure = true
        case "http" where Self.isHere(host): isSecure = false
        default: return nil
        }
        (self.text, self.host, hasQuery) = (text, host, parts.query != nil)
    }

    private static func isHere(_ host: String) -> Bool {
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        return host == "localhost" || host == "[::1]" || host == "::1"
            || octets.count == 4 && octets[0] == "127"
                && octets.allSatisfy { text in UInt8(text).map { "\($0)" } == String(text) }
    }

    /// The address with more in its query, each encoded.
    func with(_ values: [(name: String, value: String)]) -> String {
        text + (hasQuery ? "&" : "?") + FormText.encoded(values)
    }
}
