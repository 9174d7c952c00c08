import Foundation
import TidemarkCloud

/// The target of a server's redirection for a content. Anyone who has the address can read the content, so no message contains
/// it.
struct RedirectTarget: Sendable {
    /// The server that has the content, without a path.
    let host: ServerAddress
    let url: String

    private static let sizeMax = 16 << 10

    /// Checks a redirection.
    ///
    /// - Parameters:
    ///   - location: The header `Location` of an answer.
    ///   - server: The server that has answered.
    /// - Throws: `CloudError` `permissionFailure` for an address that is not followed. The scheme must be `https`. `http` is
    ///   allowed only if the server itself is used by `http`; a server on this machine may redirect by `http` to this machine
    ///   only.
    init(_ location: String?, from server: ServerAddress) throws(CloudError) {
        func refusal(_ what: String) -> CloudError {
            CloudError(.permissionFailure, "\(server) sends for a content to an address that is not followed: \(what)")
        }
        guard let location, location.utf8.count <= Self.sizeMax, location.utf8.allSatisfy({ (0x21...0x7e).contains($0) }),
            let parts = URLComponents(string: location), let scheme = parts.scheme, var name = parts.host, parts.user == nil,
            parts.password == nil, parts.fragment == nil
        else { throw refusal("it is none of a server") }
        if name.contains(":"), !name.hasPrefix("[") { name = "[\(name)]" }
        do throws(CloudError) {
            host = try ServerAddress(
                "\(scheme)://\(name)\(parts.port.map { ":\($0)" } ?? "")",
                allowsInsecure: !server.isSecure && !server.isLoopback)
        } catch {
            throw refusal("it is not https, or names no server")
        }
        guard host.isSecure || !server.isSecure else { throw refusal("it is not https") }
        // The address is composed of the checked parts, so that libcurl can't read it differently.
        url = "\(host)\(parts.percentEncodedPath)\(parts.percentEncodedQuery.map { "?\($0)" } ?? "")"
    }
}
