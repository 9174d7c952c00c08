import Foundation
import TidemarkCloud
import TidemarkCloudEngine
package import TidemarkEmbeddedCloud
package import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres
import TidemarkS3

/// The opened database of a cloud, with the place of its assets. Servers and administrators' programs share it.
package struct OpenedDatabase: Sendable {
    let database: PostgresDatabase
    let listener: PostgresListener
    let backend: PostgresCloudBackend
    let credentials: PostgresCredentialStorage
    /// Checks that the assets can be reached.
    let checkAssets: @Sendable () async throws -> Void
    /// Problems with the place of the assets that don't keep the server from serving records.
    let warnings: [String]
    /// Whether the database held no cloud.
    package let isNew: Bool
    private let temporaries = Temporaries()

    /// The temporary folders that are removed with it.
    private final class Temporaries: Sendable {
        let folders = LockedValue<[TemporaryFolder]>([])
    }

    /// Opens a database for an administrator's program, and brings its tables to their newest version. A bucket is not contacted
    /// before a content is needed.
    ///
    /// - Parameter makes: Whether a database without a cloud becomes one. The directory of assets is then checked as for a
    ///   server.
    /// - Throws: ``ServerError`` `options` for an invalid address, `storage` for a database or place that can't be used, `noData`
    ///   for a database without a cloud.
    package init(_ place: ServerConfiguration.Database, makes: Bool = true) async throws(ServerError) {
        try await self.init(place, makes: makes, serves: false, metrics: PostgresMetrics(), ofBucket: S3Metrics())
    }

    /// Opens a database for a server. A bucket that can't be reached is one of ``warnings``, and one that refuses is an error.
    ///
    /// - Parameters:
    ///   - metrics: The figures of its connections.
    ///   - bucketMetrics: The figures of the requests to a bucket.
    /// - Throws: As ``init(_:makes:)``.
    init(
        served place: ServerConfiguration.Database, metrics: PostgresMetrics, ofBucket bucketMetrics: S3Metrics
    ) async throws(ServerError) {
        try await self.init(place, makes: true, serves: true, metrics: metrics, ofBucket: bucketMetrics)
    }

    private init(
        _ place: ServerConfiguration.Database, makes: Bool, serves: Bool, metrics: PostgresMetrics,
        ofBucket bucketMetrics: S3Metrics
    ) async throws(ServerError) {
        guard !serves || !place.isBehindPooler || place.listenAddress != nil else {
            throw ServerError(.options, ServerConfiguration.Database.needsListenAddress)
        }
        let database: PostgresDatabase
        let listening: PostgresConfiguration
        do throws(PostgresError) {
            var configuration = PostgresConfiguration(try PostgresAddress(place.address))
            configuration.connections = place.connections
            configuration.preparesStatements = !place.isBehindPooler
            listening =
                if let address = place.listenAddress { PostgresConfiguration(try PostgresAddress(address)) } else {
                    configuration
                }
            database = PostgresDatabase(configuration, metrics: metrics)
        } catch {
            throw ServerError(storing: error)
        }
        self.database = database
        // If the rest can't be opened, what was opened is closed.
        var opened: PostgresListener?
        do {
            try await database.check()
            isNew = try await !Self.hasCloud(database)
            try await Self.checkIsWhole(database)
            guard makes || !isNew else {
                throw ServerError(
                    .noData,
                    "there is no cloud in the \(database.configuration.address.name); check the address, or begin one with 'tidemark admin container add'"
                )
            }
            // Notifications don't pass a pooler. An administrator's program only notifies servers.
            listener = try PostgresListener(
                listening, listens: place.listenAddress != nil || !place.isBehindPooler, metrics: metrics)
            opened = listener
            let assets = try AssetPlace(place.assets, reads: place.assetReads, metrics: bucketMetrics)
            checkAssets = assets.check
            warnings = try await serves ? assets.warnings() : []
            backend = try await PostgresCloudBackend(database, listener: listener, assets: assets.make)
            if makes { try await assets.tie(to: database) } else { try await assets.know(database) }
            credentials = try await PostgresCredentialStorage.open(database, listener: listener)
        } catch {
            await opened?.close()
            await database.close()
            throw ServerError(storing: error)
        }
    }

    private static func hasCloud(_ database: PostgresDatabase) async throws(PostgresError) -> Bool {
        try await database.query(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = current_schema() AND tablename = 'tidemark_containers')"
        )[0].value(0)
    }

    /// Checks that no cloud is being moved into the database, because a part of it would be missing.
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

    /// Makes the cloud and its credential store for a program that serves no clients. ``close()`` removes their folder.
    package func administered() throws -> (cloud: EmbeddedCloud, credentials: CredentialStore) {
        let folder = try TemporaryFolder("tidemark-admin")
        temporaries.folders.withLock { $0.append(folder) }
        return (EmbeddedCloud(in: backend, folder: folder.url), try CredentialStore(credentials))
    }

    /// Closes the database, and removes the folders.
    package func close() async {
        temporaries.folders.withLock { folders in
            for folder in folders { folder.remove() }
            folders = []
        }
        await listener.close()
        await database.close()
    }
}

extension ServerError {
    /// Makes the error of a storage that can't be opened.
    init(storing error: any Error) {
        switch error {
        case let error as ServerError: self = error
        case let error as PostgresError: self.init(error.code == .address ? .options : .storage, error.message)
        case let error as CloudError: self.init(error.code == .invalidArguments ? .options : .storage, error.reason)
        default: self.init(.storage, "\(error)")
        }
    }
}
