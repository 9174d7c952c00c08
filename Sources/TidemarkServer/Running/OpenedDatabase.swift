import Foundation
import TidemarkCloud
import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres
import TidemarkS3

/// The database of a cloud and what has the contents of its assets, opened: what servers and programs that administer have in common.
package struct OpenedDatabase: Sendable {
    let database: PostgresDatabase
    let listener: PostgresListener
    let backend: PostgresCloudBackend
    let credentials: PostgresCredentialStorage
    /// Checks that the assets can be reached.
    let checkAssets: @Sendable () async throws -> Void
    /// Whether the database held no cloud.
    package let isNew: Bool

    /// Opens a database, and brings its tables to their newest version.
    ///
    /// - Parameter makes: Whether a database without a cloud becomes one.
    /// - Throws: ``ServerError`` `options` for an address that is none, `storage` for what can't be reached or used, `noData` for a database
    ///   that has no cloud.
    package init(_ place: ServerConfiguration.Database, makes: Bool = true) async throws(ServerError) {
        try await self.init(place, makes: makes, metrics: PostgresMetrics(), ofBucket: S3Metrics())
    }

    /// - Parameters:
    ///   - metrics: The figures of its connections.
    ///   - bucketMetrics: The figures of the requests to a bucket.
    init(
        _ place: ServerConfiguration.Database, makes: Bool = true, metrics: PostgresMetrics, ofBucket bucketMetrics: S3Metrics
    ) async throws(ServerError) {
        do {
            var configuration = PostgresConfiguration(try PostgresAddress(place.address))
            configuration.connections = place.connections
            configuration.preparesStatements = !place.isBehindPooler
            database = PostgresDatabase(configuration, metrics: metrics)
            try await database.check()
            isNew = try await !Self.hasCloud(database)
            try await Self.checkIsWhole(database)
            guard makes || !isNew else {
                await database.close()
                throw ServerError(
                    .noData,
                    "there is no cloud in the \(configuration.address.name); check the address, or begin one with 'tidemark admin container add'"
                )
            }
            listener = try PostgresListener(
                place.listenAddress.map { PostgresConfiguration(try PostgresAddress($0)) } ?? configuration, metrics: metrics)
            let assets = try AssetPlace(place.assets, reads: place.assetReads, metrics: bucketMetrics)
            checkAssets = assets.check
            try await assets.check()
            backend = try await PostgresCloudBackend(database, listener: listener, assets: assets.make)
            credentials = try await PostgresCredentialStorage.open(database, listener: listener)
        } catch {
            throw ServerError(storing: error)
        }
    }

    private static func hasCloud(_ database: PostgresDatabase) async throws(PostgresError) -> Bool {
        try await database.query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'tidemark_containers')"
        )[0].value(0)
    }

    /// Makes sure that no cloud is being moved in, of which a part is missing.
    private static func checkIsWhole(_ database: PostgresDatabase) async throws {
        let hasMoves: Bool = try await database.query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'tidemark_moves')"
        )[0].value(0)
        guard hasMoves, try await !database.query("SELECT FROM tidemark_moves WHERE NOT is_done").isEmpty else { return }
        throw ServerError(
            .storage,
            "a cloud is being moved into the \(database.configuration.address.name), and is not there as a whole; run the same 'tidemark admin move' to its end"
        )
    }

    /// Makes the cloud and its credential store, for a program that serves nobody.
    package func administered() throws -> (cloud: EmbeddedCloud, credentials: CredentialStore) {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "tidemark-admin-\(getpid())", isDirectory: true)
        return (EmbeddedCloud(in: backend, folder: folder), try CredentialStore(credentials))
    }

    /// Lets go of it.
    package func close() async {
        await listener.close()
        await database.close()
    }
}

/// Where the contents of assets are: a bucket, or a directory that servers share.
struct AssetPlace: Sendable {
    /// Makes the storage of a container's assets in an environment.
    let make: @Sendable (String, StoreEnvironment) -> any AssetStorage
    /// Checks that it can be used. It may be called each second.
    let check: @Sendable () async throws -> Void

    /// - Parameters:
    ///   - reads: How clients read the contents.
    ///   - metrics: The figures of the requests to a bucket.
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
        case .directory(let folder):
            guard reads == .server else {
                throw CloudError(.invalidArguments, "a directory has no signed addresses: its assets are read through the server")
            }
            make = { EmbeddedCloud.sharedAssets(in: folder.appendingPathComponent("\($0)/\($1.rawValue)", isDirectory: true)) }
            check = {
                guard FileManager.default.isWritableFile(atPath: folder.path) else {
                    throw CloudError(
                        .serviceUnavailable, "the directory of assets, \(folder.path), is not there or can't be written to",
                        retryAfter: .seconds(60))
                }
            }
        }
    }
}

extension ServerError {
    /// Of what a storage has thrown that is being opened.
    init(storing error: any Error) {
        switch error {
        case let error as ServerError: self = error
        case let error as PostgresError: self.init(error.code == .address ? .options : .storage, error.message)
        case let error as CloudError: self.init(error.code == .invalidArguments ? .options : .storage, error.reason)
        default: self.init(.storage, "\(error)")
        }
    }
}
