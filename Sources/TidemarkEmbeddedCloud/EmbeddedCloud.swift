public import Foundation
import GRDB
public import TidemarkCloud
public import TidemarkCloudEngine
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
    /// The cloud's directory, as it was given. `Documentation/Formats/cloud.md` has its layout. With a database and a bucket it is a folder of
    /// this process, for what is on its way there.
    public let directory: URL
    /// What the cloud is stored in, if not in the directory.
    let backend: (any CloudBackend)?
    let accounts: Accounts
    /// The lock that says that a process has the cloud open, for as long as this object exists.
    private let use: CloudUse?
    private let isInMemory: Bool
    private let limits: CloudLimits
    private let opened = LockedValue<[String: CloudContainer]>([:])
    private let now: @Sendable () -> Int64
    private let random: @Sendable (Int) -> [UInt8]
    private let lanes: QueryLanes
    private let removesByItself: Bool
    private let observe: (@Sendable (String) -> Void)?
    /// Makes the storage of a container's rows, where that is not a file of the directory.
    private let storage: StorageOfContainer?

    package typealias StorageOfContainer =
        @Sendable (_ container: String, _ environment: StoreEnvironment) throws -> any CloudStorage

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

    /// Random bytes of the system's, which nobody can guess.
    package static let systemRandom: @Sendable (Int) -> [UInt8] = { count in
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }

    /// - Parameter storage: Makes the storage of a container's rows. Accounts and assets stay in the directory.
    package init(
        at directory: URL, limits: CloudLimits = CloudLimits(), queries: QueryLimits = QueryLimits(),
        removesByItself: Bool = true, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8] = EmbeddedCloud.systemRandom,
        observing observe: (@Sendable (String) -> Void)? = nil, storage: StorageOfContainer? = nil
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
        self.now = now
        self.random = random
        isInMemory = false
        lanes = QueryLanes(QueryLanes.Limits(queries))
        self.removesByItself = removesByItself
        self.observe = observe
        self.storage = storage
    }

    /// Keeps accounts and records in memory, for one process; only assets lie in the directory. For simulations.
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
        self.now = now
        self.random = random
        isInMemory = true
        lanes = QueryLanes()
        removesByItself = true
        self.observe = observe
        storage = nil
    }

    /// Opens a cloud that is stored in a database and a bucket. Nothing is read yet.
    ///
    /// - Parameters:
    ///   - backend: Where it is stored.
    ///   - folder: A folder of this process alone, for what is on its way to the bucket.
    ///   - limits: The sizes that the cloud accepts through this object.
    ///   - queries: The limits of a query's cost through this object.
    package init(
        in backend: any CloudBackend, folder: URL, limits: CloudLimits = CloudLimits(), queries: QueryLimits = QueryLimits(),
        removesByItself: Bool = true, now: @escaping @Sendable () -> Int64 = Timestamp.now,
        random: @escaping @Sendable (Int) -> [UInt8] = EmbeddedCloud.systemRandom
    ) {
        (self.backend, directory, use) = (backend, folder, nil)
        accounts = Accounts(backend.accounts)
        (self.limits, self.now, self.random) = (limits, now, random)
        isInMemory = false
        lanes = QueryLanes(QueryLanes.Limits(queries))
        (self.removesByItself, observe, storage) = (removesByItself, nil, nil)
    }

    /// The storage of assets in a directory that several servers share.
    package static func sharedAssets(in folder: URL) -> any AssetStorage { AssetDirectory(folder) }

    /// Where the cloud is, for messages.
    package var place: String { backend?.name ?? directory.path }

    /// Returns whether a directory holds a cloud.
    public static func exists(at directory: URL) -> Bool {
        FileManager.default.fileExists(atPath: directory.appendingPathComponent(accountsFile).path)
    }

    private static let accountsFile = "accounts.sqlite"

    // Accounts

    /// Checks that an account can have an address, and a container a name. Nothing is made.
    ///
    /// - Throws: `CloudError` `invalidArguments`.
    public static func check(email: String, container: String) throws(CloudError) {
        try Accounts.check(email)
        try check(container: container)
    }

    /// Adds an account. An account that has the address already is returned as it is.
    ///
    /// - Parameters:
    ///   - email: An address. Case and Unicode's normal form make no difference.
    ///   - phone: A number, with `+` and the country's, by which others can find and invite the person.
    ///   - name: The name that participants of the person's shares see.
    ///   - quota: The bytes that the account may store in each container and environment.
    /// - Throws: `CloudError` `invalidArguments` for a malformed address or number, and for a number that another account has;
    ///   `zoneBusy`; `internalError`.
    @discardableResult
    public func addAccount(
        _ email: String, phone: String? = nil, name: PersonName? = nil, quota: Int64 = .max
    ) async throws(CloudError) -> StoredAccount {
        try await accounts.add(email, phone: phone, name: name, quota: quota)
    }

    /// Adds an account, unless one has the address already.
    ///
    /// - Parameter quota: The bytes that the account may store in each container and environment.
    /// - Returns: The account; `nil` where another one has the address.
    /// - Throws: `CloudError` as ``addAccount(_:phone:name:quota:)`` does.
    package func addNewAccount(_ email: String, name: PersonName?, quota: Int64) async throws(CloudError) -> StoredAccount? {
        try await accounts.addNew(email, name: name, quota: quota)
    }

    /// Returns the account of an address; `nil` where there is none. Case and Unicode's normal form make no difference.
    ///
    /// - Throws: `CloudError` `internalError`.
    public func account(_ email: String) async throws(CloudError) -> StoredAccount? { try await accounts.find(email) }

    /// Returns the account of an identifier; `nil` where there is none.
    public func account(id: String) async throws(CloudError) -> StoredAccount? { try await accounts.find(id: id) }

    /// Returns all accounts, in the order of their addresses. O(accounts).
    public func allAccounts() async throws(CloudError) -> [StoredAccount] { try await accounts.all() }

    /// Removes an account unless something was stored for it.
    package func removeIfUnused(_ account: StoredAccount) async throws(CloudError) {
        for (name, environment) in try await containers() {
            let user = Self.userRecordName(account.id, in: name)
            let zones = try await openedContainer(name, environment).engine.storage.read { rows throws(CloudError) in
                try rows.zones(of: user, after: -1, limit: 1)
            }
            guard zones.isEmpty else { return }
        }
        try await accounts.remove(account)
    }

    /// Whether there is no account in it.
    package func isUnused() async throws(CloudError) -> Bool { try await accounts.isEmpty() }

    /// The containers of the cloud; in a directory by the names of folders, which may be others'.
    ///
    /// - Throws: `CloudError` `internalError` when they can't be listed: a cloud that can't be read is not an empty one.
    func containers() async throws(CloudError) -> [(String, StoreEnvironment)] {
        if let backend { return try await backend.containers().map { ($0.name, $0.environment) } }
        let folder = directory.appendingPathComponent("containers", isDirectory: true)
        return try CloudDirectory.names(in: folder).flatMap { name in
            [StoreEnvironment.development, .production].filter {
                FileManager.default.fileExists(atPath: folder.appendingPathComponent("\(name)/\($0.rawValue)").path)
            }.map { (name, $0) }
        }
    }

    /// Changes an account's phone number, name, quota, status, and whether others can find it. The account is identified by
    /// ``StoredAccount/id``; the address can't change.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a malformed number or a number that another account has; `zoneBusy`;
    ///   `internalError`.
    public func update(_ account: StoredAccount) async throws(CloudError) { try await accounts.update(account) }

    /// Changes some of an account, but not its address, and keeps what others change at the same time.
    ///
    /// - Parameter change: Is called with the account as it is, again where it was changed meanwhile.
    /// - Returns: The account before and after; `nil` where there is none.
    /// - Throws: As ``update(_:)``.
    package func update(
        id: String, _ change: @Sendable (inout StoredAccount) -> Void
    ) async throws(CloudError) -> (before: StoredAccount, after: StoredAccount)? {
        try await accounts.update(id: id, change)
    }

    /// Returns the account that a container knows by a name; `nil` where there is none.
    package func account(userRecordName: String, in container: String) async throws(CloudError) -> StoredAccount? {
        try await accounts.find(.userRecordName(userRecordName), in: container)
    }

    /// Gives an account another address.
    ///
    /// - Returns: The address as it is stored.
    /// - Throws: `CloudError` `invalidArguments` for a malformed address, and for one that another account has.
    package func setAddress(_ email: String, of account: StoredAccount) async throws(CloudError) -> String {
        try await accounts.setAddress(email, of: account.id)
    }

    // Databases

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

    /// Returns the record types of a container, with the indexes of their fields.
    public func schema(of container: String, environment: StoreEnvironment = .development) async throws(CloudError) -> CloudSchema
    {
        try await openedContainer(container, environment).engine.schema()
    }

    /// Sets the indexes of a field. For the field `recordName`, `queryable` makes the type itself queryable. O(records of the type).
    ///
    /// - Throws: `CloudError` `unknownItem` for an unknown type; `invalidArguments` for an unknown field, or an index that its type
    ///   can't have.
    public func setIndexes(
        _ indexes: Set<CloudSchema.Index>, of field: String, in type: String, container: String,
        environment: StoreEnvironment = .development
    ) async throws(CloudError) {
        try await openedContainer(container, environment).engine.setIndexes(indexes, of: field, in: type)
    }

    /// Copies the development schema to the production environment, where the schema is fixed. Types and fields of production that
    /// development lacks stay.
    ///
    /// - Throws: `CloudError` `invalidArguments` where a field has another type in production.
    public func deploySchema(of container: String) async throws(CloudError) {
        let schema = try await schema(of: container)
        try await openedContainer(container, .production).engine.deploy(schema)
    }

    /// Deploys a development schema as it was read, to the production schema with which it was compared.
    ///
    /// - Throws: `CloudError` `invalidArguments` where a field has another type in production; `serverRecordChanged` where production has
    ///   another schema by now.
    package func deploySchema(_ schema: CloudSchema, over known: CloudSchema, of container: String) async throws(CloudError) {
        try await openedContainer(container, .production).engine.deploy(schema, over: known)
    }

    /// Removes a record type, or one of its fields, from the development schema. The next record that has it decides its type.
    /// O(records of the type).
    ///
    /// - Parameter isForced: Whether to remove it although records have it. They keep their values, which no query finds by the field.
    /// - Returns: The number of records that have it.
    /// - Throws: `CloudError` `unknownItem` for an unknown type or field; `invalidArguments` where records have it.
    @discardableResult
    public func removeFromSchema(
        type: String, field: String? = nil, of container: String, isForced: Bool = false
    ) async throws(CloudError) -> Int {
        try await openedContainer(container, .development).engine.removeFromSchema(type, field: field, isForced: isForced)
    }

    /// Adds types and fields to the development schema: by the names of types, the types of fields by their names.
    ///
    /// - Throws: `CloudError` `invalidArguments`, `limitExceeded`, `zoneBusy`, `internalError`.
    package func addToSchema(_ types: [String: [String: FieldType]], of container: String) async throws(CloudError) {
        try await openedContainer(container, .development).engine.addToSchema(types)
    }

    /// Sets whether saved records may add types and fields to the development schema.
    public func setSchemaFrozen(_ isFrozen: Bool, of container: String) async throws(CloudError) {
        try await openedContainer(container, .development).engine.setFrozen(isFrozen)
    }

    /// An account's name in a container: `_` and 32 hexadecimal digits.
    package static func userRecordName(_ account: String, in container: String) -> String {
        StoredAccount.userRecordName(of: account, in: container)
    }

    /// Makes sure that a container can have a name.
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

    /// Returns a container, which is opened, and made if need be.
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
                // What another process has left.
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

    /// The storages of a container's folder.
    private func storages(in folder: URL, of name: String, _ environment: StoreEnvironment) throws -> ContainerStorages {
        let records: any CloudStorage =
            if let storage = try storage?(name, environment) { storage } else if isInMemory {
                try SQLiteCloudStorage(inMemoryObserving: observe)
            } else {
                try SQLiteCloudStorage(at: folder.appendingPathComponent("records.sqlite"), observing: observe)
            }
        let assets = AssetDirectory(
            folder.appendingPathComponent("assets", isDirectory: true),
            backupLock: isInMemory ? nil : CloudDirectory(url: directory).backupLock)
        return ContainerStorages(records: records, assets: assets, signal: try ZoneChangeNotifier(folder))
    }
}

/// What an embedded cloud has of one container in one environment.
final class CloudContainer: Sendable {
    let name: String
    let engine: CloudEngine
    let assetStorage: any AssetStorage
    let notifier: any ChangeSignal
    let looks = SharedLooks()
    private let removals: RemovalTask
    private let removesByItself: Bool

    init(_ name: String, _ storages: ContainerStorages, _ engine: CloudEngine, removesByItself: Bool) {
        (self.name, self.engine, self.removesByItself) = (name, engine, removesByItself)
        (assetStorage, notifier) = (storages.assets, storages.signal)
        removals = RemovalTask(engine, assetStorage, notifier)
    }

    /// Has what is left to be removed go, beside what else is done.
    func goOnRemoving() { if removesByItself { removals.begin() } }
}

/// Tells others that a cloud is open, so that nobody puts another in its place.
private final class CloudUse: Sendable {
    private let lock: Lock

    init(of directory: CloudDirectory) throws {
        lock = Lock(try StoreLock(at: directory.useLock))
        try lock.take(directory)
    }

    /// `@unchecked Sendable`: it is touched when it is made, and when it goes.
    private final class Lock: @unchecked Sendable {
        private let lock: StoreLock

        init(_ lock: consuming StoreLock) { self.lock = lock }

        func take(_ directory: CloudDirectory) throws {
            do {
                try lock.acquire(shared: true, timeout: .seconds(5))
            } catch {
                guard error.code == .busy else { throw error }
                throw StoreError(.busy, "\(directory.url.path) is just being replaced; try again when that is done")
            }
        }
    }
}
