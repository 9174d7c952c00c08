import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkPostgres

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
    /// Checks that everything can be reached but the contents of assets, without which records go on.
    let checkRecords: @Sendable () async throws(Missing) -> Void
    /// Whether saves are refused because the database has no room.
    let hasNoRoom: @Sendable () -> Bool
    /// What is amiss as the server starts, and no reason not to.
    let warnings: [String]
    /// Lets go of it.
    let close: @Sendable () async -> Void

    /// Opens an embedded cloud's directory.
    init(
        at directory: URL, access: CredentialStore, metrics: ServerMetrics, queries: QueryLimits
    ) throws {
        try self.init(
            at: directory, EmbeddedCloud(at: directory, limits: ServedCloud.limits, queries: queries), access: access,
            metrics: metrics)
    }

    /// Opens what else a directory has whose cloud is open.
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

    /// Opens a database and what has its assets.
    ///
    /// - Throws: ``ServerError`` `options` for an address that is none, `storage` for what can't be reached or used, but for a bucket that
    ///   can't be reached: that is one of ``warnings``.
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

/// What a server needs, and can't reach or use now.
struct Missing: Error {
    /// What it is, as a sentence that may be told to everybody.
    enum Part: String, CustomStringConvertible {
        case directory = "the databases can't be read"
        case database = "the database can't be reached or used"
        case writes = "the database takes no writes: it is read-only"
        case version = "a newer version of the server has migrated the database"
        case assets = "the place of the assets can't be reached or used"

        var description: String { rawValue }
    }

    let part: Part
    /// Why, for the log.
    let reason: String

    init(part: Part, reason: String) { (self.part, self.reason) = (part, reason) }

    /// Makes what is missing where a database has not passed its check.
    init(database error: PostgresError) {
        let part: Part =
            switch error.code {
            case .readOnly: .writes
            case .newerVersion: .version
            default: .database
            }
        self.init(part: part, reason: error.message)
    }

    /// Runs what needs a part.
    static func throwing(_ part: Part, _ body: () async throws -> Void) async throws(Missing) {
        do {
            try await body()
        } catch {
            throw Missing(part: part, reason: "\(error)")
        }
    }
}
