import CCurl
import Foundation

/// The mail server for letters, with the sender and the login there.
package struct MailServer: Sendable {
    /// Why the options of a mail server are refused.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package let host: String
    package let port: Int
    /// Whether the connection begins with TLS. Otherwise the server has to offer TLS before the login and the letter are sent
    /// (STARTTLS).
    package let beginsWithTLS: Bool
    /// The address that letters are from.
    package let sender: String
    /// The login, if the server asks for one.
    package let login: (user: String, password: String)?
    /// A file of certificates to trust, in PEM, instead of the machine's.
    package let authorities: String?

    /// - Parameters:
    ///   - address: `smtps://host` or `smtp://host`, with a port if it is not 465 or 587.
    ///   - sender: The address that letters are from.
    ///   - user: The user's name at the server; `nil` where the server asks for no login.
    ///   - password: The user's password.
    ///   - authorities: A file of certificates to trust, in PEM, instead of the machine's.
    /// - Throws: ``Failure`` for options that are refused.
    package init(
        _ address: String, from sender: String, user: String? = nil, password: String? = nil, authorities: String? = nil
    ) throws(Failure) {
        guard let parts = URLComponents(string: address), parts.scheme == "smtps" || parts.scheme == "smtp",
            let host = parts.host, !host.isEmpty, parts.path.isEmpty || parts.path == "/", parts.query == nil,
            parts.fragment == nil
        else { throw Failure(description: "'\(address.prefix(100))' is no mail server: take smtps://host or smtp://host:587") }
        guard parts.user == nil, parts.password == nil else {
            throw Failure(
                description: "the mail server's address has a name or a password in it, which others could read; give them apart")
        }
        guard MailMessage.isAddress(sender) else {
            throw Failure(description: "'\(sender.prefix(100))' is no address that letters can be from")
        }
        guard (user == nil) == (password == nil) else {
            throw Failure(description: "the mail server's user and password go together")
        }
        beginsWithTLS = parts.scheme == "smtps"
        (self.host, port) = (host, parts.port ?? (beginsWithTLS ? 465 : 587))
        self.sender = sender
        login = user.flatMap { user in password.map { (user, $0) } }
        self.authorities = authorities
    }

    /// Whether the server is on this machine, so that no network is in between.
    var isHere: Bool {
        var address = in_addr()
        let isLoopback = host.hasPrefix("127.") && inet_pton(AF_INET, host, &address) == 1
        return isLoopback || host == "localhost" || host == "::1" || host == "[::1]"
    }

    /// How much TLS is required on a connection that begins without it. A mail server on this machine often has a certificate
    /// that no authority has signed: without a login, TLS is not required there. It is used if authorities are given and the
    /// server offers it.
    var security: curl_usessl {
        guard isHere, login == nil else { return CURLUSESSL_ALL }
        return authorities == nil ? CURLUSESSL_NONE : CURLUSESSL_TRY
    }

    /// The address, for libcurl and for messages.
    var address: String {
        "\(beginsWithTLS ? "smtps" : "smtp")://\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host):\(port)"
    }
}
