public import Foundation
import GRDB
public import TidemarkCloud
package import TidemarkCloudEngine
public import TidemarkModel
import TidemarkSQLite

/// A cloud in a directory, for several processes: accounts, containers and environments. A server can have one in a database and a bucket
/// instead.
///
/// ```swift
/// let cloud = try EmbeddedCloud(at: URL(fileURLWithPath: "cloud"))
/// let anna = try await cloud.addAccount("anna@example.org")
/// let database = try cloud.database(.private, of: "iCloud.org.example.journal", account: anna.id)
/// ```
public final class EmbeddedCloud: Sendable {
    /// The cloud's directory, as it was given. `Documentation/Formats/cloud.md` has its layout. For a cloud in a database and a
    /// bucket it is a folder of this process, for contents on their way to the bucket.
    public let directory: URL
    /// The storage of a cloud that is not in a directory.
    let backend: (any CloudBackend)?
    let accounts: Accounts
    /// The lock that tells other processes that the cloud is open.
    private let use: CloudUse?
    private let isInMemory: Bool
    private let limits: CloudLimits
    private let opened = LockedValue<[String: CloudContainer]>([:])
    private let now: @Sendable () -> Int64
    private let random: @Sendable (Int) -> [UInt8]
    private let lanes: QueryLanes
    private let removesByItself: Bool
    private let observe: (@Sendable (String) -> Void)?
    /// Makes the storage of a container's rows; `nil` for files in the directory.
    private let storage: StorageOfContainer?
    /// Makes the storage of a container's assets from that of its folder; `nil` for the folder itself.
    private let assets: AssetsOfContainer?

    package typealias StorageOfContainer =
        @Sendable (_ container: String, _ environment: StoreEnvironment) throws -> any CloudStorage
    package typealias AssetsOfContainer = @Sendable (_ folder: any AssetStorage) -> any AssetStorage

    /// Opens the cloud of a directory, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - limits: The sizes that the cloud accepts through this object.
    ///   - queries: The limits of a query's cost through this object.
    /// - Throws: `CloudError` `zoneBusy` while the cloud is being replaced; `internalError`.
    public convenience init(
        at directory: URL, limits: CloudLimits = CloudLimits(), queries: QueryLimits = QueryLimits()
    ) throws(CloudError) {
        try self.init(
            at: directory, limits: limits, queries: queries, now: { Int64((Date().timeIntervalSince1970 * 1e6).rounded()) })
    }

    /// Returns random bytes of the system, which nobody can guess.
    package static let systemRandom: @Sendable (Int) -> [UInt8] = { count in
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// - Parameters:
    ///   - storage: Makes the storage of a container's rows. Accounts and assets stay in the directory.
    ///   - assets: Makes the storage of a container's assets over that of its folder.
    package init(
        at directory: URL, limits: CloudLimits = CloudLimits(), queries: QueryLimits = QueryLimits(),
        removesByItself: Bool = true, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8] = EmbeddedCloud.systemRandom,
        observing observe: (@Sendable (String) -> Void)? = nil, storage: StorageOfContainer? = nil,
        assets: AssetsOfContainer? = nil
    ) throws(CloudError) {
        do {
            try Folder.make(directory, mode: 0o700)
            use = try CloudUse(of: CloudDirectory(url: directory))
            accounts = Accounts(try AccountStore(at: directory.appendingPathComponent(Self.accountsFile)))
        } catch {
            throw CloudError(storage: error)
        }
        self.directory = directory
        backend = nil
        self.limits = limits
        self.now = Timestamp.bounded(now)
        self.random = random
        isInMemory = false
        lanes = QueryLanes(QueryLanes.Limits(queries))
        self.removesByItself = removesByItself
        self.observe = observe
        (self.storage, self.assets) = (storage, assets)
    }

    /// Keeps accounts and records in memory, for simulations in one process. Only assets are in the directory.
    package init(
        inMemoryBeside directory: URL, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8] = EmbeddedCloud.systemRandom,
        observing observe: (@Sendable (String) -> Void)? = nil
    ) throws(CloudError) {
        do {
            try Folder.make(directory, mode: 0o700)
            accounts = Accounts(try AccountStore(), newID: AccountStore.repeatedID)
            use = nil
        } catch {
            throw CloudError(storage: error)
        }
        self.directory = directory
        backend = nil
        limits = CloudLimits()
        self.now = Timestamp.bounded(now)
        self.random = random
        isInMemory = true
        lanes = QueryLanes()
        removesByItself = true
        self.observe = observe
        (storage, assets) = (nil, nil)
    }

    /// Opens a cloud that is stored in a database and a bucket. Nothing is read yet.
    ///
    /// - Parameters:
    ///   - backend: The storage of the cloud.
    ///   - folder: A folder of this process alone, for contents on their way to the bucket.
    ///   - limits: The sizes that the cloud accepts through this object.
    ///   - queries: The limits of a query's cost through this object.
    package init(
        in backend: any CloudBackend, folder: URL, limits: CloudLimits = CloudLimits(), queries: QueryLimits = QueryLimits(),
        removesByItself: Bool = true, now: @escaping @Sendable () -> Int64 = Timestamp.now,
        random: @escaping @Sendable (Int) -> [UInt8] = EmbeddedCloud.systemRandom
    ) {
        (self.backend, directory, use) = (backend, folder, nil)
        accounts = Accounts(backend.accounts)
        (self.limits, self.now, self.random) = (limits, Timestamp.bounded(now), random)
        isInMemory = false
        lanes = QueryLanes(QueryLanes.Limits(queries))
        (self.removesByItself, observe, storage, assets) = (removesByItself, nil, nil, nil)
    }

    /// Returns the storage of assets in a folder of a directory that several servers share.
    ///
    /// - Parameter directory: The shared directory, which is checked before the folder is used; `nil` where no check is needed.
    package static func sharedAssets(in folder: URL, of directory: SharedAssetDirectory? = nil) -> any AssetStorage {
        AssetDirectory(folder, in: directory)
    }

    /// The cloud's place, for messages.
    package var place: String { backend?.name ?? directory.path }

    /// Returns whether a directory holds a cloud.
    public static func exists(at directory: URL) -> Bool {
        FileManager.default.fileExists(atPath: directory.appendingPathComponent(accountsFile).path)
    }

    private static let accountsFile = "accounts.sqlite"

    // Containers

    /// Returns the containers of the cloud. In a directory these are the names of folders, and some may not be containers.
    ///
    /// - Throws: `CloudError` `internalError` when they can't be listed: a cloud that can't be read is not an empty one.
    package func containers() async throws(CloudError) -> [(String, StoreEnvironment)] {
        if let backend { return try await backend.containers().map { ($0.name, $0.environment) } }
        let folder = directory.appendingPathComponent("containers", isDirectory: true)
        return try CloudDirectory.names(in: folder).flatMap { name in
            [StoreEnvironment.development, .production].filter {
                FileManager.default.fileExists(atPath: folder.appendingPathComponent("\(name)/\($0.rawValue)").path)
            }.map { (name, $0) }
        }
    }

    /// Returns a database of a container, as an account sees it. The container is made if it is not there.
    ///
    /// - Parameters:
    ///   - container: Its identifier, a reverse domain name such as `iCloud.org.example.journal`.
    ///   - account: The account's identifier; `nil` for a caller who is not signed in, and who may only read the public database.
    /// - Throws: `CloudError` `invalidArguments` for a container's malformed name; `zoneBusy`; `internalError`, also where a container of a
    ///   database was not opened by `open(_:environment:)`.
    public func database(
        _ scope: DatabaseScope, of container: String, environment: StoreEnvironment = .development, account: String?
    ) throws(CloudError) -> EmbeddedDatabase {
        EmbeddedDatabase(
            scope: scope, container: try self.container(container, environment), accounts: accounts, account: account,
            userRecordName: account.map { Self.userRecordName($0, in: container) })
    }

    /// Checks that a container can have a name.
    ///
    /// - Throws: `CloudError` `invalidArguments`.
    package static func check(container name: String) throws(CloudError) {
        let isName =
            (1...255).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                $0 == 0x2d || $0 == 0x2e || $0 == 0x5f || (0x30...0x39).contains($0) || (0x41...0x5a).contains($0)
                    || (0x61...0x7a).contains($0)
            }
            && name.utf8.first != 0x2e && !zip(name.utf8, name.utf8.dropFirst()).contains { $0 == 0x2e && $1 == 0x2e }
        guard isName else {
            throw CloudError(
                .invalidArguments, "'\(name.prefix(100))' can't identify a container: letters, digits, hyphens and single dots")
        }
    }

    /// Opens a container, and makes it if it is not there. In a directory ``database(_:of:environment:account:)`` does so by itself.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a malformed name; `zoneBusy`, `serviceUnavailable`; `internalError`.
    package func open(_ container: String, environment: StoreEnvironment) async throws(CloudError) {
        _ = try await openedContainer(container, environment)
    }

    /// Returns a container. It opens the container, and makes it if it does not exist.
    func openedContainer(_ name: String, _ environment: StoreEnvironment) async throws(CloudError) -> CloudContainer {
        guard let backend else { return try container(name, environment) }
        try Self.check(container: name)
        let key = "\(name)/\(environment.rawValue)"
        if let known = opened.withLock({ $0[key] }) { return known }
        let storages = try await backend.open(name, environment)
        let container = CloudContainer(
            name, storages, engine(over: storages.records, environment), removesByItself: removesByItself)
        let first = opened.withLock { opened in
            // Another task may have opened it meanwhile.
            if let known = opened[key] { return known }
            opened[key] = container
            return container
        }
        first.goOnRemoving()
        return first
    }

    /// Removes deleted content from the logs of the accounts and of all open containers, unless something prevents it. Takes at
    /// most a second where something does.
    package func emptyLogs() async {
        let storage = accounts.storage
        let containers = opened.withLock { Array($0.values) }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await storage.emptyLog() }
            for container in containers {
                group.addTask { await container.engine.storage.emptyLog() }
            }
        }
    }

    /// Returns a container that is open, or in the directory.
    func container(_ name: String, _ environment: StoreEnvironment) throws(CloudError) -> CloudContainer {
        try Self.check(container: name)
        let key = "\(name)/\(environment.rawValue)"
        guard backend == nil else {
            if let known = opened.withLock({ $0[key] }) { return known }
            throw CloudError(.internalError, "the container '\(name)' was not opened")
        }
        do {
            return try opened.withLock { opened in
                if let known = opened[key] { return known }
                let folder = directory.appendingPathComponent("containers/\(key)", isDirectory: true)
                try Folder.make(folder, mode: 0o700)
                let storages = try self.storages(in: folder, of: name, environment)
                let container = CloudContainer(
                    name, storages, engine(over: storages.records, environment), removesByItself: removesByItself)
                // Another process may have left removals.
                if !isInMemory { container.goOnRemoving() }
                opened[key] = container
                return container
            }
        } catch {
            throw CloudError(storage: error)
        }
    }

    private func engine(over storage: any CloudStorage, _ environment: StoreEnvironment) -> CloudEngine {
        CloudEngine(storage: storage, limits: limits, environment: environment, now: now, random: random, lanes: lanes)
    }

    /// Makes the storages of a container's folder.
    private func storages(in folder: URL, of name: String, _ environment: StoreEnvironment) throws -> ContainerStorages {
        let records: any CloudStorage =
            if let storage = try storage?(name, environment) { storage } else if isInMemory {
                try SQLiteCloudStorage(inMemoryObserving: observe)
            } else {
                try SQLiteCloudStorage(at: folder.appendingPathComponent("records.sqlite"), observing: observe)
            }
        let contents: any AssetStorage = AssetDirectory(
            folder.appendingPathComponent("assets", isDirectory: true),
            backupLock: isInMemory ? nil : CloudDirectory(url: directory).backupLock)
        return ContainerStorages(
            records: records, assets: assets?(contents) ?? contents, signal: try ZoneChangeNotifier(folder))
    }
}
