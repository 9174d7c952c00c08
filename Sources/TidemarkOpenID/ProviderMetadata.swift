import Foundation

/// A provider's configuration (OpenID Connect Discovery 1.0, section 3), as far as it is used.
struct ProviderMetadata: Sendable {
    /// How this server sends the client's secret.
    enum Authentication: Sendable {
        /// In the header.
        case basic
        /// In the form.
        case post
    }

    let authorization, token, keys: ProviderAddress
    let userInfo: ProviderAddress?
    let authentication: Authentication
    /// Whether each answer says which provider it is from (RFC 9207).
    let namesItself: Bool

    private struct Document: Decodable {
        let issuer: String
        let authorization, token, keys: String
        let userInfo: String?
        let authenticationMethods: [String]?
        let namesItself: Bool?

        enum CodingKeys: String, CodingKey {
            case issuer
            case authorization = "authorization_endpoint"
            case token = "token_endpoint"
            case keys = "jwks_uri"
            case userInfo = "userinfo_endpoint"
            case authenticationMethods = "token_endpoint_auth_methods_supported"
            case namesItself = "authorization_response_iss_parameter_supported"
        }
    }

    /// - Throws: ``OpenIDError`` `unreachable` if the bytes are no configuration, `misconfigured` if it does not fit.
    init(_ bytes: [UInt8], of provider: OpenIDProvider) throws(OpenIDError) {
        let document: Document
        do {
            document = try JSONDecoder().decode(Document.self, from: Data(bytes))
        } catch {
            throw OpenIDError(
                .unreachable, "what \(provider.configurationAddress) answers is no configuration of an identity provider")
        }
        guard document.issuer.utf8.elementsEqual(provider.issuer.utf8) else {
            throw OpenIDError(
                .misconfigured,
                "the identity provider calls itself '\(OpenIDError.shown(document.issuer))', and not '\(provider.issuer)': the option has "
                    + "to be the same to the letter")
        }
        let isSecure = provider.issuer.hasPrefix("https:")
        func address(_ text: String) throws(OpenIDError) -> ProviderAddress {
            guard let address = ProviderAddress(text), address.isSecure == isSecure else {
                throw OpenIDError(
                    .misconfigured,
                    "the identity provider names '\(OpenIDError.shown(text))', which is no \(isSecure ? "https" : "http") address"
                )
            }
            return address
        }
        (authorization, token) = (try address(document.authorization), try address(document.token))
        keys = try address(document.keys)
        if let text = document.userInfo { userInfo = try address(text) } else { userInfo = nil }
        // The default is the header.
        let methods = document.authenticationMethods ?? ["client_secret_basic"]
        authentication = methods.contains("client_secret_basic") || !methods.contains("client_secret_post") ? .basic : .post
        namesItself = document.namesItself ?? false
    }
}
