import Foundation
public import TidemarkCloud

/// The address of a server: `https://sync.example.org`, perhaps with a port and the beginning of a path.
///
/// ```swift
/// let address = try ServerAddress("https://sync.example.org")
/// ```
public struct ServerAddress: Hashable, Sendable {
    /// Whether the scheme is `https`.
    public let isSecure: Bool
    /// A host name or an IP address, in lower case; an IPv6 address without brackets.
    public let host: String
    /// The port; `nil` for the scheme's default.
    public let port: Int?
    /// The beginning of all paths of the cloud: empty, or such as `/sync`.
    public let path: String

    /// Reads an address.
    ///
    /// - Parameters:
    ///   - text: The address with its scheme. A slash at the end is ignored.
    ///   - allowsInsecure: Whether `http` is allowed with other machines. Everybody on the network path can then read the records
    ///     and the session token, and act for the account.
    /// - Throws: `CloudError` `invalidArguments`.
    public init(_ text: String, allowsInsecure: Bool = false) throws(CloudError) {
        func refusal(_ what: String) -> CloudError {
            // The message does not have the text, since it may contain a password.
            CloudError(.invalidArguments, "the server's address \(what); it is as https://sync.example.org")
        }
        guard text.utf8.count <= 1000, text.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let parts = URLComponents(string: text)
        else { throw refusal("is no address") }
        switch parts.scheme?.lowercased() {
        case "https": isSecure = true
        case "http": isSecure = false
        default: throw refusal("does not begin with https://, or http:// for this machine")
        }
        guard var host = parts.host?.lowercased(), !host.isEmpty else { throw refusal("names no host") }
        if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
        guard host.utf8.allSatisfy(Self.isOfHost) else { throw refusal("names no host") }
        guard parts.user == nil, parts.password == nil else {
            throw refusal("has a user name or a password in it; name the account with --email, or sign in with both")
        }
        guard parts.query == nil, parts.fragment == nil else { throw refusal("has a '?' or a '#' in it") }
        if let port = parts.port {
            guard (1...65_535).contains(port) else { throw refusal("has no port between 1 and 65535") }
        }
        let steps = parts.percentEncodedPath.split(separator: "/", omittingEmptySubsequences: true)
        guard !steps.contains("."), !steps.contains(".."), steps.allSatisfy({ $0.utf8.allSatisfy(Self.isOfPath) }) else {
            throw refusal("has an invalid path")
        }
        self.host = host
        port = parts.port == (isSecure ? 443 : 80) ? nil : parts.port
        path = steps.map { "/\($0)" }.joined()
        guard isSecure || allowsInsecure || isLoopback else {
            throw CloudError(
                .invalidArguments,
                """
                \(self) is not encrypted: everybody on the way could read the records, and the password. Have the server speak https; in \
                a network of which you are sure, --insecure-http allows it
                """)
        }
    }

    /// Whether a text is an address, and not the path of a directory.
    public static func isAddress(_ text: String) -> Bool {
        let start = text.prefix(8).lowercased()
        return start.hasPrefix("https://") || start.hasPrefix("http://")
    }

    /// Whether the host is this machine.
    public var isLoopback: Bool {
        if host == "localhost" || host == "::1" { return true }
        // Numbers with a leading zero do not count, because some programs read them as octal.
        let octets = host.split(separator: ".", omittingEmptySubsequences: false)
        return octets.count == 4 && octets[0] == "127"
            && octets.allSatisfy { text in UInt8(text).map { "\($0)" } == String(text) }
    }

    private static func isOfHost(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7a, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"): true
        default: false
        }
    }

    private static func isOfPath(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}

extension ServerAddress: CustomStringConvertible {
    /// The address without a default port, and without a slash at the end.
    public var description: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return "\(isSecure ? "https" : "http")://\(name)\(port.map { ":\($0)" } ?? "")\(path)"
    }
}
