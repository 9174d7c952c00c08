import CCurl
import Foundation

/// The server that letters are handed to, and as whom.
package struct MailServer: Sendable {
    /// Why letters can't be sent so.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package let host: String
    package let port: Int
    /// Whether the connection begins with TLS; otherwise the server has to offer it before anything is told to it (STARTTLS).
    package let beginsWithTLS: Bool
    /// The address that letters are from.
    package let sender: String
    /// What the server asks for before it takes a letter.
    package let login: (user: String, password: String)?
    /// A file of certificates to trust, in PEM, instead of the machine's.
    package let authorities: String?

    /// - Parameters:
    ///   - address: `smtps://host` or `smtp://host`, with a port if it is not 465 or 587.
    ///   - sender: The address that letters are from.
    ///   - user: The user's name at the server; `nil` where it asks for none.
    ///   - password: The user's password.
    ///   - authorities: A file of certificates to trust, in PEM, instead of the machine's.
    /// - Throws: ``Failure`` for what can't be.
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

    /// Whether it is this machine: then there is nobody in between.
    var isHere: Bool {
        var address = in_addr()
        let isLoopback = host.hasPrefix("127.") && inet_pton(AF_INET, host, &address) == 1
        return isLoopback || host == "localhost" || host == "::1" || host == "[::1]"
    }

    /// What is asked of TLS on a connection that begins without it. On this machine, a mail server has a certificate of its own that nobody has
    /// signed: without a password and without authorities to check it by, TLS is not asked for.
    var security: curl_usessl {
        guard isHere, login == nil else { return CURLUSESSL_ALL }
        return authorities == nil ? CURLUSESSL_NONE : CURLUSESSL_TRY
    }

    /// The address, for libcurl and for messages.
    var address: String {
        "\(beginsWithTLS ? "smtps" : "smtp")://\(host.contains(":") && !host.hasPrefix("[") ? "[\(host)]" : host):\(port)"
    }
}
