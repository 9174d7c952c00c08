import Foundation
import TidemarkCloud

/// Where a server says that a content can be read. The address is as good as the content: it is in no message.
struct RedirectTarget: Sendable {
    /// The server that has the content, without a path.
    let host: ServerAddress
    let url: String

    private static let sizeMax = 16 << 10

    /// - Parameters:
    ///   - location: The header `Location` of an answer.
    ///   - server: Who has answered.
    /// - Throws: `CloudError` `permissionFailure` for what is not followed: another scheme than `https`, but for `http` from a server that is asked
    ///   by `http` itself, and from this machine to this machine.
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
        // From the parts that were looked at, so that libcurl reads nothing else in it.
        url = "\(host)\(parts.percentEncodedPath)\(parts.percentEncodedQuery.map { "?\($0)" } ?? "")"
    }
}
