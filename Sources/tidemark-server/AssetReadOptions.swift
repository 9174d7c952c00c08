import ArgumentParser
import Foundation
import TidemarkCommands
import TidemarkServer

/// How clients read the contents of assets that are in a bucket.
struct AssetReadOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "How clients read the contents of assets: server, which passes them on; or signed, from the bucket, by addresses that are good for two "
                + "minutes.", valueName: "way"))
    var assetReads = "server"

    @Option(
        help: ArgumentHelp(
            "With --asset-reads signed, the address by which clients reach the bucket. (default: that of the servers)",
            valueName: "url"))
    var s3PublicEndpoint: String?

    var reads: ServerConfiguration.AssetReads { assetReads == "signed" ? .signed(endpoint: s3PublicEndpoint) : .server }

    /// - Parameters:
    ///   - storage: The storage of the contents.
    ///   - isSecure: Whether clients are known to reach the server by https.
    func validate(with storage: StorageOptions, isSecure: Bool) throws {
        guard ["server", "signed"].contains(assetReads) else { throw ValidationError("--asset-reads takes server or signed") }
        guard assetReads == "signed" else {
            guard s3PublicEndpoint == nil else { throw ValidationError("--s3-public-endpoint needs --asset-reads signed") }
            return
        }
        guard let assets = storage.assets, StorageOptions.bucket(of: assets) != nil else {
            throw ValidationError("--asset-reads signed needs a bucket: --assets s3://bucket")
        }
        let endpoint = s3PublicEndpoint ?? storage.s3Endpoint
        guard !isSecure || endpoint?.lowercased().hasPrefix("http:") != true else {
            throw ValidationError(
                "clients that come by https are not sent to http: give the bucket's https address by --s3-public-endpoint")
        }
    }
}
