import Foundation
package import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel

/// Addresses by which clients read contents from the bucket itself.
extension S3AssetStorage {
    package var signsURLs: Bool { configuration.readEndpoint != nil }

    package func signedURL(of asset: CloudAsset, owner: String) throws(CloudError) -> String? {
        guard let endpoint = configuration.readEndpoint else { return nil }
        try asset.check()
        return configuration.signedURL(
            key(asset, owner: owner), at: endpoint, keys: try client.keys(), now: now(), for: configuration.readTime,
            answering: [
                ("response-cache-control", AssetHeaders.cacheControl),
                ("response-content-disposition", AssetHeaders.contentDisposition),
                ("response-content-type", AssetHeaders.contentType),
            ])
    }
}

extension S3Configuration {
    /// Returns the URL of an object for GET, presigned by AWS Signature Version 4: the signature is in the query. libcurl signs
    /// requests, and can't presign a URL.
    ///
    /// - Parameters:
    ///   - endpoint: Where clients reach the bucket. The signature covers its host.
    ///   - seconds: How long the URL is valid from `now` on.
    ///   - headers: Parameters that make the bucket answer with other headers than the object's own.
    func signedURL(
        _ key: String, at endpoint: String, keys: S3Credentials.Keys, now: Date, for seconds: Int,
        answering headers: [(String, String)] = []
    ) -> String {
        // As 20130524T000000Z.
        let time = Timestamp.text(microseconds: Int64(now.timeIntervalSince1970) * 1_000_000).filter { $0 != "-" && $0 != ":" }
        let scope = [String(time.prefix(8)), region, "s3", "aws4_request"]
        var query = headers
        query += [
            ("X-Amz-Algorithm", Self.algorithm), ("X-Amz-Credential", ([keys.id] + scope).joined(separator: "/")),
            ("X-Amz-Date", time), ("X-Amz-Expires", "\(seconds)"), ("X-Amz-SignedHeaders", "host"),
        ]
        if let token = keys.token, !token.isEmpty { query.append(("X-Amz-Security-Token", token)) }
        let url = url(key, query, at: endpoint)

        // The URL is encoded and sorted already, as the signature requires.
        let parts = url.split(separator: "?", maxSplits: 1)
        let place = parts[0].split(separator: "/", maxSplits: 2)
        let canonical = ["GET", "/\(place[2])", String(parts[1]), "host:\(place[1])", "", "host", "UNSIGNED-PAYLOAD"]
        let digest = S3Client.digest(Array(canonical.joined(separator: "\n").utf8))
        let text = [Self.algorithm, time, scope.joined(separator: "/"), digest].joined(separator: "\n")
        let code = (scope + [text]).reduce(Array("AWS4\(keys.secret)".utf8)) { HMACSHA256.code(of: Array($1.utf8), key: $0) }
        return "\(url)&X-Amz-Signature=\(Hexadecimal.text(code))"
    }

    private static let algorithm = "AWS4-HMAC-SHA256"
}
