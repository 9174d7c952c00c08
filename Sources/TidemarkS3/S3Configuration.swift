import Foundation
package import TidemarkCloud
package import TidemarkHTTP
import TidemarkModel

/// Where assets are: a bucket of a server that speaks S3, and how it is reached.
package struct S3Configuration: Sendable {
    /// How the bucket stands in addresses.
    package enum Style: Sendable {
        /// `https://host/bucket/key`, as most servers but Amazon's want it.
        case path
        /// `https://bucket.host/key`.
        case virtualHost
    }

    package let bucket: String
    /// The scheme, host and port, without a path.
    package let endpoint: String
    package let isSecure: Bool
    package let region: String
    package let style: Style
    /// Where clients reach the bucket, like ``endpoint`` and without the scheme's default port. `nil` if clients read contents
    /// only through the servers.
    package private(set) var readEndpoint: String?
    /// How many seconds the URL of a content is valid. A client has to begin within this time, and clocks may differ by as much.
    package var readTime = 120
    /// Where the keys are read from that requests are signed with.
    package var credentials: S3Credentials
    package var trustRoots = TrustRoots.system
    package var metrics = S3Metrics()

    /// How often a request is sent at the most.
    package var attempts = 6
    /// A request is not sent again after this time.
    package var patience = Duration.seconds(30)
    /// Like ``patience``, for requests that block a transaction.
    package var blockingPatience = Duration.seconds(5)
    /// How long a request may take without a byte that moves.
    package var silence = Duration.seconds(20)
    /// Bytes of a part of a multipart upload. S3 takes 5 MiB at the least.
    package var partSize = 8 << 20
    /// Bytes of the largest content that is read as a whole, once, before parts of it are handed out.
    package var comparedSizeMax: Int64 = 32 << 20

    /// Makes a configuration.
    ///
    /// - Parameters:
    ///   - bucket: The bucket's name, such as `journal`.
    ///   - endpoint: The server's address without a path; `nil` for Amazon's in the region.
    ///   - style: `nil` for Amazon's servers by virtual host, and others by path.
    /// - Throws: `CloudError` `invalidArguments` for a bucket, an endpoint or a region that is not valid.
    package init(
        bucket: String, endpoint: String?, region: String, style: Style? = nil, credentials: S3Credentials
    ) throws(CloudError) {
        let isName = bucket.utf8.allSatisfy {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".")
        }
        guard isName, 3...63 ~= bucket.utf8.count, bucket.first != ".", bucket.first != "-" else {
            throw CloudError(
                .invalidArguments, "'\(bucket.prefix(100))' is no name of a bucket: it has 3 to 63 letters, digits and hyphens")
        }
        guard !region.isEmpty,
            region.utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != UInt8(ascii: ":") && $0 != UInt8(ascii: "/") })
        else { throw CloudError(.invalidArguments, "'\(region.prefix(100))' is no region, such as us-east-1") }
        let place = try Self.parts(of: endpoint ?? "https://s3.\(region).amazonaws.com", "the endpoint of S3")
        self.bucket = bucket
        self.region = region
        self.credentials = credentials
        isSecure = place.scheme == "https"
        self.endpoint = "\(place.scheme)://\(place.host)\(place.port.map { ":\($0)" } ?? "")"
        self.style = style ?? (place.host.hasSuffix(".amazonaws.com") ? .virtualHost : .path)
    }

    /// Lets clients read contents by addresses that servers sign.
    ///
    /// - Parameter endpoint: Where clients reach the bucket; `nil` where they reach it as servers do.
    /// - Throws: `CloudError` `invalidArguments` for an endpoint that is not valid.
    package mutating func signReads(at endpoint: String?) throws(CloudError) {
        let place = try Self.parts(of: endpoint ?? self.endpoint, "the public endpoint of S3")
        // The host as clients write it in Host, since that is signed.
        let port = place.port == (place.scheme == "https" ? 443 : 80) ? nil : place.port
        readEndpoint = "\(place.scheme)://\(place.host.lowercased())\(port.map { ":\($0)" } ?? "")"
    }

    /// A warning of an endpoint to which clients can't be sent; `nil` for none. Clients that came to the server by https, or from
    /// its own machine, do not go on to another machine without https.
    package var warningOfReads: String? {
        // The endpoint was read before, so that it is an address.
        guard let readEndpoint, let address = try? ServerAddress(readEndpoint, allowsInsecure: true), !address.isSecure,
            !address.isLoopback
        else { return nil }
        return
            "clients read contents at \(readEndpoint), without https: those that reach the server by https, or on its own machine, follow no such address. Give the bucket's https address with --s3-public-endpoint"
    }

    /// - Parameter name: The name of the endpoint, for the error.
    private static func parts(
        of endpoint: String, _ name: String
    ) throws(CloudError) -> (scheme: String, host: String, port: Int?) {
        guard let parts = URLComponents(string: endpoint), let scheme = parts.scheme?.lowercased(),
            ["http", "https"].contains(scheme),
            let host = parts.host, !host.isEmpty, ["", "/"].contains(parts.path), parts.query == nil, parts.user == nil,
            parts.password == nil
        else {
            throw CloudError(
                .invalidArguments, "\(name) is such as https://s3.example.org: a scheme, a host and, if need be, a port")
        }
        return (scheme, host, parts.port)
    }

    /// What messages call the bucket.
    var name: String { "bucket '\(bucket)' at \(endpoint)" }

    /// The address of a key, or of the bucket for an empty one.
    ///
    /// - Parameter place: An endpoint; `nil` for that of servers.
    func url(_ key: String, _ query: [(String, String)], at place: String? = nil) -> String {
        let endpoint = place ?? self.endpoint
        var url: String
        switch style {
        case .path: url = "\(endpoint)/\(bucket)"
        case .virtualHost: url = endpoint.replacingOccurrences(of: "://", with: "://\(bucket).")
        }
        if !key.isEmpty || style == .virtualHost { url += "/" + PercentCoding.encoded(key, keepsSlashes: true) }
        guard !query.isEmpty else { return url }
        // The signature needs the parameters in the order of their names, and each with a value.
        let pairs = query.sorted { $0.0 < $1.0 }.map { "\(PercentCoding.encoded($0.0))=\(PercentCoding.encoded($0.1))" }
        return url + "?" + pairs.joined(separator: "&")
    }
}
