import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkPostgres

/// The opened storages of a server's cloud.
struct ServedStorages: Sendable {
    let cloud: EmbeddedCloud
    let access: CredentialStore
    let subscriptions: SubscriptionStore
    let mailbox: any NotificationStorage
    /// The storage that counts attempts to sign in.
    let signInRates: any SignInRateStorage
    /// The folder of uploads that are not complete.
    let incoming: URL
    /// Checks that everything can be reached.
    let check: @Sendable () async throws(Missing) -> Void
    /// Checks that everything can be reached except contents of assets. Records can be served without these.
    let checkRecords: @Sendable () async throws(Missing) -> Void
    /// Whether saves are refused because the database has no room.
    let hasNoRoom: @Sendable () -> Bool
    /// Problems that don't keep the server from starting.
    let warnings: [String]
    /// Closes the storages.
    let close: @Sendable () async -> Void

    /// Opens an embedded cloud's directory.
    init(
        at directory: URL, access: CredentialStore, metrics: ServerMetrics, queries: QueryLimits
    ) throws {
        try self.init(
            at: directory, EmbeddedCloud(at: directory, limits: ServedCloud.limits, queries: queries), access: access,
            metrics: metrics)
    }

    /// Opens the other storages of a directory whose cloud is open.
    init(at directory: URL, _ cloud: EmbeddedCloud, access: CredentialStore, metrics: ServerMetrics) throws {
        (self.cloud, self.access) = (cloud, access)
        subscriptions = try SubscriptionStore(at: directory)
        mailbox = NotificationMailbox(metrics: metrics)
        signInRates = ProcessSignInRates()
        incoming = directory.appendingPathComponent("incoming", isDirectory: true)
        check = { () async throws(Missing) in try await Self.check(cloud, access) }
        checkRecords = check
        hasNoRoom = { false }
        warnings = []
        close = {}
    }

    /// Opens a database and the place of its assets.
    ///
    /// - Throws: ``ServerError`` `options` for an invalid address, `storage` for a database or place that can't be used. A bucket
    ///   that can't be reached is only one of ``warnings``.
    init(
        in place: ServerConfiguration.Database, folder: URL, metrics: ServerMetrics, limits: ServerLimits
    ) async throws(ServerError) {
        let opened = try await OpenedDatabase(
            served: place, metrics: metrics.ofDatabase(), ofBucket: metrics.ofBucket())
        warnings = opened.warnings
        let (database, listener) = (opened.database, opened.listener)
        do {
            cloud = EmbeddedCloud(in: opened.backend, folder: folder, limits: ServedCloud.limits, queries: limits.queries)
            access = try CredentialStore(opened.credentials, hashesAtOnce: limits.hashesAtOnce)
            subscriptions = SubscriptionStore(try await PostgresSubscriptionStorage.open(database))
        } catch {
            throw ServerError(storing: error)
        }
        mailbox = PostgresNotificationStorage(database, listener: listener) { put, dropped in
            metrics.count(.notifications, put)
            metrics.count(.notificationsDropped, dropped)
        }
        signInRates = PostgresSignInRates(database)
        incoming = folder.appendingPathComponent("incoming", isDirectory: true)
        let checkRecords: @Sendable () async throws(Missing) -> Void = { () async throws(Missing) in
            do throws(PostgresError) {
                try await database.checkService()
            } catch {
                throw Missing(database: error)
            }
        }
        self.checkRecords = checkRecords
        check = { () async throws(Missing) in
            try await checkRecords()
            try await Missing.throwing(.assets) { try await opened.checkAssets() }
        }
        hasNoRoom = { database.isFull }
        close = { await opened.close() }
    }

    /// Reads a little of an embedded cloud.
    static func check(_ cloud: EmbeddedCloud, _ access: CredentialStore) async throws(Missing) {
        try await Missing.throwing(.directory) {
            _ = try access.containers()
            _ = try await cloud.account("nobody@localhost")
        }
    }
}

/// A part that a server needs and can't reach or use now.
struct Missing: Error {
    /// The part, as a sentence that anybody may read.
    enum Part: String, CustomStringConvertible {
        case directory = "the databases can't be read"
        case database = "the database can't be reached or used"
        case writes = "the database takes no writes: it is read-only"
        case version = "a newer version of the server has migrated the database"
        case assets = "the place of the assets can't be reached or used"

        var description: String { rawValue }
    }

    let part: Part
    /// The reason, for the log.
    let reason: String

    init(part: Part, reason: String) { (self.part, self.reason) = (part, reason) }

    /// Makes the error of a database that has failed its check.
    init(database error: PostgresError) {
        let part: Part =
            switch error.code {
            case .readOnly: .writes
            case .newerVersion: .version
            default: .database
            }
        self.init(part: part, reason: error.message)
    }

    /// Runs a body that needs a part, and turns its error into one of the part.
    static func throwing(_ part: Part, _ body: () async throws -> Void) async throws(Missing) {
        do {
            try await body()
        } catch {
            throw Missing(part: part, reason: "\(error)")
        }
    }
}
