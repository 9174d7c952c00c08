import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres
import TidemarkS3

/// Where the cloud of a server is stored, opened: all that the operations need of it.
struct ServedStorages: Sendable {
    let cloud: EmbeddedCloud
    let access: CredentialStore
    let subscriptions: SubscriptionStore
    let mailbox: any NotificationStorage
    /// Where attempts to sign in are counted.
    let signInRates: any SignInRateStorage
    /// Where uploads lie that are not complete.
    let incoming: URL
    /// Checks that everything can be reached.
    let check: @Sendable () async throws(Missing) -> Void
    /// Lets go of it.
    let close: @Sendable () async -> Void

    /// Opens an embedded cloud's directory.
    init(
        at directory: URL, access: CredentialStore, metrics: ServerMetrics, queries: QueryLimits
    ) throws {
        let cloud = try EmbeddedCloud(at: directory, limits: ServedCloud.limits, queries: queries)
        (self.cloud, self.access) = (cloud, access)
        subscriptions = try SubscriptionStore(at: directory)
        mailbox = NotificationMailbox(metrics: metrics)
        signInRates = ProcessSignInRates()
        incoming = directory.appendingPathComponent("incoming", isDirectory: true)
        check = { () async throws(Missing) in try await Self.check(cloud, access) }
        close = {}
    }

    /// Opens a database and what has its assets.
    ///
    /// - Throws: ``ServerError`` `options` for an address that is none, `storage` for what can't be reached or used.
    init(
        in place: ServerConfiguration.Database, folder: URL, metrics: ServerMetrics, limits: ServerLimits
    ) async throws(ServerError) {
        do {
            var configuration = PostgresConfiguration(try PostgresAddress(place.address))
            configuration.connections = place.connections
            configuration.preparesStatements = !place.isBehindPooler
            let database = PostgresDatabase(configuration, metrics: metrics.ofDatabase())
            try await database.check()
            let listener = try PostgresListener(
                place.listenAddress.map { PostgresConfiguration(try PostgresAddress($0)) } ?? configuration)
            let (assets, checkAssets) = try Self.assets(place.assets)
            try await checkAssets()
            let backend = try await PostgresCloudBackend(database, listener: listener, assets: assets)
            cloud = EmbeddedCloud(in: backend, folder: folder, limits: ServedCloud.limits, queries: limits.queries)
            access = try CredentialStore(
                try await PostgresCredentialStorage.open(database, listener: listener), hashesAtOnce: limits.hashesAtOnce)
            subscriptions = SubscriptionStore(try await PostgresSubscriptionStorage.open(database))
            mailbox = PostgresNotificationStorage(database, listener: listener) { put, dropped in
                metrics.count(.notifications, put)
                metrics.count(.notificationsDropped, dropped)
            }
            signInRates = PostgresSignInRates(database)
            incoming = folder.appendingPathComponent("incoming", isDirectory: true)
            check = { () async throws(Missing) in
                try await Missing.throwing(.database) { try await database.check() }
                try await Missing.throwing(.assets) { try await checkAssets() }
            }
            close = {
                await listener.close()
                await database.close()
            }
        } catch let error as ServerError {
            throw error
        } catch let error as PostgresError {
            throw ServerError(error.code == .address ? .options : .storage, error.message)
        } catch let error as CloudError {
            throw ServerError(error.code == .invalidArguments ? .options : .storage, error.reason)
        } catch {
            throw ServerError(.storage, "\(error)")
        }
    }

    /// Reads a little of an embedded cloud.
    static func check(_ cloud: EmbeddedCloud, _ access: CredentialStore) async throws(Missing) {
        try await Missing.throwing(.directory) {
            _ = try access.containers()
            _ = try await cloud.account("nobody@localhost")
        }
    }

    /// What makes the storages of assets, and checks where they are.
    private static func assets(
        _ place: ServerConfiguration.Assets
    ) throws(CloudError) -> (
        make: @Sendable (String, StoreEnvironment) -> any AssetStorage, check: @Sendable () async throws -> Void
    ) {
        switch place {
        case .bucket(let bucket, let prefix, let endpoint, let region, let usesPaths):
            let configuration = try S3Configuration(
                bucket: bucket, endpoint: endpoint, region: region, style: usesPaths.map { $0 ? .path : .virtualHost },
                credentials: .environment())
            let probe = S3AssetStorage(configuration, prefix: prefix)
            return (
                { S3AssetStorage(configuration, prefix: "\(prefix)\($0)/\($1.rawValue)") }, { try await probe.check() }
            )
        case .directory(let folder):
            return (
                { EmbeddedCloud.sharedAssets(in: folder.appendingPathComponent("\($0)/\($1.rawValue)", isDirectory: true)) },
                {
                    guard FileManager.default.isWritableFile(atPath: folder.path) else {
                        throw CloudError(
                            .serviceUnavailable, "the directory of assets, \(folder.path), is not there or can't be written to",
                            retryAfter: .seconds(60))
                    }
                }
            )
        }
    }
}

/// What a server needs, and can't reach or use now.
struct Missing: Error {
    /// What it is, as a sentence that may be told to everybody.
    enum Part: String, CustomStringConvertible {
        case directory = "the databases can't be read"
        case database = "the database can't be reached or used"
        case assets = "the place of the assets can't be reached or used"

        var description: String { rawValue }
    }

    let part: Part
    /// Why, for the log.
    let reason: String

    /// Runs what needs a part.
    static func throwing(_ part: Part, _ body: () async throws -> Void) async throws(Missing) {
        do {
            try await body()
        } catch {
            throw Missing(part: part, reason: "\(error)")
        }
    }
}
