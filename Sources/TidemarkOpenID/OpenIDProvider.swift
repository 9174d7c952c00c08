package import Foundation
import TidemarkCloud
import TidemarkHTTP

/// An identity provider, and this server's registration there.
package struct OpenIDProvider: Sendable {
    /// The address by which the provider calls itself. It is compared as it stands.
    package let issuer: String
    package let clientID: String
    /// The client's secret; `nil` where this server is registered as a client without a secret.
    package let clientSecret: String?
    /// The provider's name for people.
    package let name: String
    /// Whether an identity that is connected with no account gets a new account.
    package let signsUp: Bool
    /// The authorities from which the provider's certificate may be.
    let trustRoots: TrustRoots

    /// - Parameters:
    ///   - issuer: The address by which the provider calls itself; `http` only on this machine.
    ///   - clientID: The client's identifier, which the provider has given out.
    ///   - clientSecret: The client's secret, which the provider has given out; `nil` for none.
    ///   - name: The provider's name for people; the host's name by default.
    ///   - signsUp: Whether an identity that is connected with no account gets a new account.
    ///   - authorities: A file of certificates in PEM that sign the provider's; `nil` for the certificates that this machine
    ///     trusts.
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

    /// The address of the provider's configuration (OpenID Connect Discovery 1.0, section 4).
    var configurationAddress: String {
        "\(issuer.hasSuffix("/") ? String(issuer.dropLast()) : issuer)/.well-known/openid-configuration"
    }
}

/// An address of a provider: encrypted, or on this machine. It has no character that could end an attribute or a header.
struct ProviderAddress: Hashable, Sendable {
    let text: String
    let host: String
    let isSecure: Bool
    let hasQuery: Bool

    /// - Returns: `nil` if the text is no such address.
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

    /// The address with more names and values in its query, which are encoded here.
    func with(_ values: [(name: String, value: String)]) -> String {
        text + (hasQuery ? "&" : "?") + FormText.encoded(values)
    }
}
