import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkPostgres
import TidemarkS3

/// The place of assets' contents: a bucket, or a directory that servers share.
struct AssetPlace: Sendable {
    /// Makes the storage of a container's assets in an environment.
    let make: @Sendable (String, StoreEnvironment) -> any AssetStorage
    /// Checks that it can be used. It may be called each second.
    let check: @Sendable () async throws -> Void
    /// Returns warnings for a starting server. Throws where the server must not start.
    let warnings: @Sendable () async throws -> [String]
    /// The directory; `nil` for a bucket, which can't be confused with another.
    private let directory: SharedAssetDirectory?

    /// How long a starting server waits for the bucket.
    private static let patience = Duration.seconds(5)

    /// - Parameters:
    ///   - reads: How clients read contents.
    ///   - metrics: The figures of the requests to a bucket.
    /// - Throws: `CloudError` `invalidArguments` for an invalid place.
    init(
        _ place: ServerConfiguration.Assets, reads: ServerConfiguration.AssetReads = .server, metrics: S3Metrics = S3Metrics()
    ) throws(CloudError) {
        switch place {
        case .bucket(let bucket, let prefix, let endpoint, let region, let usesPaths):
            var configuration = try S3Configuration(
                bucket: bucket, endpoint: endpoint, region: region, style: usesPaths.map { $0 ? .path : .virtualHost },
                credentials: .environment())
            configuration.metrics = metrics
            if case .signed(let endpoint) = reads { try configuration.signReads(at: endpoint) }
            let probe = S3AssetStorage(configuration, prefix: prefix)
            make = { [configuration] in S3AssetStorage(configuration, prefix: "\(prefix)\($0)/\($1.rawValue)") }
            check = { try await probe.checkOften() }
            var first = configuration
            (first.patience, first.silence) = (Self.patience, Self.patience)
            warnings = { [first] in
                let storage = S3AssetStorage(first, prefix: prefix)
                let result: Result<CloudError?, any Error>
                do {
                    result = .success(try await storage.checkAtStart())
                } catch {
                    result = .failure(error)
                }
                await storage.close()
                let unreachable = try result.get().map {
                    "\($0.reason). Records are served; what needs a content of an asset is answered with 503 until that is mended"
                }
                return [unreachable, first.warningOfReads].compactMap { $0 }
            }
            directory = nil
        case .directory(let folder):
            guard reads == .server else {
                throw CloudError(.invalidArguments, "a directory has no signed addresses: its assets are read through the server")
            }
            let shared = SharedAssetDirectory(folder)
            make = {
                EmbeddedCloud.sharedAssets(
                    in: folder.appendingPathComponent("\($0)/\($1.rawValue)", isDirectory: true), of: shared)
            }
            check = {
                try shared.checkIsWritable()
                try shared.check()
            }
            warnings = { [] }
            directory = shared
        }
    }

    /// Ties a directory to a database, unless it is tied. From then on the database is used with no other directory. A bucket is
    /// left as it is.
    ///
    /// The first directory is tied automatically, if it has contents or the database names none.
    ///
    /// - Parameter database: The database, whose tables have their newest version.
    /// - Throws: `CloudError` `serviceUnavailable` for a directory that is not there or not the database's; `PostgresError`.
    func tie(to database: PostgresDatabase) async throws {
        guard let directory else { return }
        try directory.checkIsWritable()
        let fresh = Hexadecimal.text((0..<16).map { _ in UInt8.random(in: .min ... .max) })
        let known = try await database.assetPlaceIdentifier()
        if let known, try directory.readMarker() == .of(known) { return directory.expect(known) }
        let identifier = try await database.tieAssetPlace { known, namesContents in
            let found = try directory.readMarker()
            switch (found, known) {
            case (.of(let identifier), _) where identifier == known: return identifier
            case (.unclaimed, _): return known ?? fresh
            case (.missing, nil):
                // A file system that is not mounted leaves an empty directory.
                guard try !namesContents || directory.hasContents() else { throw directory.emptiness }
                // An empty marker waits for its identifier. So a server that ends in between leaves nothing half done.
                try directory.makeMarker()
                return fresh
            default: throw directory.mismatch(found)
            }
        }
        try directory.writeMarker(identifier)
        directory.expect(identifier)
    }

    /// Reads the identifier of a database's directory. The directory itself is looked at when a content is needed.
    func know(_ database: PostgresDatabase) async throws {
        guard let directory, let known = try await database.assetPlaceIdentifier() else { return }
        directory.expect(known)
    }
}
