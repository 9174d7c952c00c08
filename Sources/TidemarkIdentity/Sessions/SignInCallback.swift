import Foundation

/// Where the sign-in page brings the session token.
public enum SignInCallback: Hashable, Sendable {
    /// The browser goes to this address, with `ckWebAuthToken` in its query.
    case redirect(String)
    /// The sign-in page was opened in a window of its own, and posts the token to the page that has opened it, if that is of this
    /// origin.
    case popup(origin: String)

    /// Checks the address: `http`, `https`, or the scheme of a program, which has a dot as `org.example.journal` has.
    ///
    /// - Throws: ``CredentialError`` `invalid`.
    public static func checkedRedirect(_ address: String) throws(CredentialError) -> SignInCallback {
        let shown = address.prefix(200)
        guard (1...2048).contains(address.utf8.count), address.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let parts = URLComponents(string: address), let scheme = parts.scheme?.lowercased()
        else {
            throw CredentialError(.invalid, "'\(shown)' is no address to go to, such as https://journal.example.org/signed-in")
        }
        let isWeb = scheme == "http" || scheme == "https"
        guard isWeb || scheme.contains(".") else {
            throw CredentialError(
                .invalid,
                "'\(shown)' can't be gone to: use https, or the scheme of a program, which has a dot as in org.example.journal:")
        }
        guard !isWeb || parts.host?.isEmpty == false else { throw CredentialError(.invalid, "'\(shown)' names no host") }
        guard parts.user == nil, parts.password == nil else {
            throw CredentialError(.invalid, "'\(shown)' names a user; leave that out")
        }
        guard parts.fragment == nil else { throw CredentialError(.invalid, "'\(shown)' has a part behind '#'; leave that out") }
        return .redirect(address)
    }

    /// Checks the origin.
    ///
    /// - Throws: ``CredentialError`` `invalid`.
    public static func checkedPopup(_ origin: String) throws(CredentialError) -> SignInCallback {
        .popup(origin: try WebOrigin.checked(origin))
    }

    /// The address with a session token in its query; `nil` for a popup.
    public func address(with token: SessionToken) -> String? {
        guard case .redirect(let address) = self else { return nil }
        // A session token has no character that an address would have to escape.
        return address + (address.contains("?") ? "&" : "?") + "ckWebAuthToken=" + token.text
    }
}

/// The origin of a web page: scheme, host and port.
enum WebOrigin {
    /// Returns an origin as browsers write it: in lower case, without the usual port of its scheme.
    static func checked(_ origin: String) throws(CredentialError) -> String {
        let wrong = CredentialError(
            .invalid, "'\(origin.prefix(200))' is no origin: scheme, host and port only, such as https://journal.example.org")
        guard origin.utf8.count <= 300, origin.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let parts = URLComponents(string: origin), let scheme = parts.scheme?.lowercased(),
            scheme == "http" || scheme == "https", let host = parts.host?.lowercased(), !host.isEmpty, !host.contains("*"),
            parts.user == nil, parts.password == nil, parts.path.isEmpty, parts.query == nil, parts.fragment == nil
        else { throw wrong }
        guard let port = parts.port, port != (scheme == "http" ? 80 : 443) else { return "\(scheme)://\(host)" }
        guard (1...65535).contains(port) else { throw wrong }
        return "\(scheme)://\(host):\(port)"
    }
}
