public import Foundation
public import TidemarkModel
public import TidemarkSQLite

/// A container's directory: `container.json`, `private.sqlite`, `shared.sqlite` and their files, `assets/`, `staging/`.
///
/// The format is specified in Documentation/Formats/store.md.
public struct ContainerDirectory: Hashable, Sendable {
    /// The contents of `container.json`.
    public struct Description: Codable, Hashable, Sendable {
        /// The number of the format; see ``ContainerDirectory/format``.
        public var format: Int
        /// The container's own number. It stays the same when the container is moved, and in backups of it.
        public var identity: UUID
        /// The container's name.
        public var name: String
        /// Whether the schema may grow with each save (development) or is fixed (production), as in CloudKit.
        public var environment: StoreEnvironment
        /// A number that only a copy has, such as a backup. It tells the copy from the original, whose `identity` it shares.
        public var copy: UUID?
    }

    /// The newest format that this version reads and writes.
    public static let format = Int(FormatMigrations.stores.newest)
    /// The oldest format that this version migrates.
    public static let oldestFormat = Int(FormatMigrations.stores.oldest)

    /// The container's folder.
    public let url: URL
    /// The contents of `container.json` when the container was opened.
    public let description: Description
    /// The container's `container.json` at the time of opening.
    let place: ContainerPlace
    /// The migrations that bring its stores to the newest format.
    package let migrations: FormatMigrations
    /// Whether the call that returned this object has made the container.
    package private(set) var isNew = false

    /// The database file of a scope.
    public func store(_ scope: StoreScope) -> URL { url.appendingPathComponent("\(scope.name).sqlite") }
    /// The scopes that have a database file in a container; these share the assets.
    public static let scopes = StoreScope.allCases
    /// Every database file that a container may have.
    var stores: [URL] { Self.scopes.map(store) }
    /// The folder of the assets' files, which both stores share.
    public var assets: URL { url.appendingPathComponent("assets", isDirectory: true) }
    /// The folder of files that are on their way into `assets`, and of the lock that imports hold.
    public var staging: URL { url.appendingPathComponent("staging", isDirectory: true) }
    /// The file in which a program may keep its session with a served cloud, for all processes of its user. It moves with the
    /// container, and is in no backup.
    public var session: URL { url.appendingPathComponent(ContainerContents.session) }

    /// Returns whether a scope's database file exists and is not empty.
    package func hasStore(_ scope: StoreScope) -> Bool { Self.size(store(scope)) > 0 }

    /// Makes the error of a store that existed and is missing.
    package func storeIsMissing(_ scope: StoreScope) -> StoreError {
        StoreError(
            .notFound,
            """
            \(store(scope).path) is missing or empty, and the container still has what belongs to it. Put it back, with \
            \(scope.name).sqlite-wal if you have that. To begin anew, choose another container
            """)
    }

    /// Checks that a missing store may be made. If its log is left, or if assets are left that only this private store can have
    /// named, the store was lost.
    package func checkStoreMayBeMade(_ scope: StoreScope) throws(StoreError) {
        guard Self.size(URL(fileURLWithPath: store(scope).path + "-wal")) <= 0 else { throw storeIsMissing(scope) }
        try checkAssetsBelongToOthers(scope)
    }

    /// Checks that the container's assets, if any, can belong to another store.
    func checkAssetsBelongToOthers(_ scope: StoreScope) throws(StoreError) {
        if Self.scopes.contains(where: { $0 != scope && hasStore($0) }) { return }
        guard try AssetFiles.isEmpty(assets) else { throw storeIsMissing(scope) }
    }

    private static func size(_ url: URL) -> Int64 {
        var status = stat()
        return stat(url.path, &status) == 0 ? Int64(status.st_size) : -1
    }

    /// Makes an object for a directory that is not a valid container at its place: the old files of a moved one, or an unfinished
    /// copy.
    package init(uncountedAt url: URL, description: Description) {
        self.url = url
        self.description = description
        place = ContainerPlace(of: url.appendingPathComponent("container.json"))
        migrations = .stores
    }

    /// Opens the container at `url`.
    ///
    /// - Throws: ``StoreError`` `notFound`, `unreadable`, `notAStore`, `newerFormat`, `olderFormat`, `io`, `moved` when it is at another
    ///   place now, or `incompleteCopy` when it is the copy of a move that is not done.
    public init(openingAt url: URL) throws(StoreError) { try self.init(openingAt: url, migrations: .stores) }

    /// Opens the container at `url` with other migrations than this version's.
    package init(openingAt url: URL, migrations: FormatMigrations) throws(StoreError) {
        let file = url.appendingPathComponent("container.json")
        // Taken before the description is read, so that a later replacement is noticed.
        let place = ContainerPlace(of: file)
        let data: Data
        do throws(StoreError) {
            guard let read = try DurableFile.data(of: file, followsLink: true) else { throw Folder.failure("read", file.path) }
            data = read
        } catch  where error.code == .corrupt {
            throw StoreError(.notAStore, "\(url.path) is no Tidemark container: \(error.message)")
        } catch {
            // Only a path that certainly does not exist is missing. One that may not be looked at is unreadable.
            if access(url.path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR {
                throw StoreError(.notFound, "there is no container at \(url.path)")
            }
            if access(file.path, F_OK) != 0, errno == ENOENT || errno == ENOTDIR {
                try MoveJournal.checkCounts(url)
                throw StoreError(.notAStore, "\(url.path) is no Tidemark container: it has no container.json")
            }
            throw error
        }
        try self.init(at: url, describedBy: data, place: place, migrations: migrations)
    }

    /// The container at `url`, whose `container.json` holds `data`.
    ///
    /// - Throws: ``StoreError`` `notAStore` or `newerFormat`.
    init(
        at url: URL, describedBy data: Data, place: ContainerPlace, migrations: FormatMigrations = .stores
    ) throws(StoreError) {
        self.place = place
        self.migrations = migrations
        let file = url.appendingPathComponent("container.json")
        struct Version: Codable { var format: Int }
        let decoder = JSONDecoder()
        guard let version = try? decoder.decode(Version.self, from: data) else {
            throw StoreError(.notAStore, "\(file.path) is not the description of a Tidemark container")
        }
        try migrations.checkIsKnown(version.format, of: url.path)
        try MovedNotice.check(data, at: url)
        try MoveJournal.checkCounts(url)
        do {
            description = try decoder.decode(Description.self, from: data)
        } catch {
            throw StoreError(.notAStore, "\(file.path) is not the description of a Tidemark container: \(error)")
        }
        self.url = url
    }

    /// Opens the container at `url`, or makes a new one there if nothing is there (or an empty directory).
    ///
    /// - Throws: ``StoreError`` `cannotCreate`, and those of `init(openingAt:)`.
    public init(openingOrCreatingAt url: URL, environment: StoreEnvironment = .development) throws(StoreError) {
        self = try Self.repeatingWhereRemoved { () throws(StoreError) in
            try Self(openingOrCreatingOnceAt: url, environment: environment)
        } isRemoved: {
            // The folder that it was making or opening has gone: these errors occur otherwise only in a folder with a description
            // or other files.
            ($0.code == .notFound || $0.code == .notAStore || $0.code == .cannotCreate) && Self.isEmpty(url)
        }
    }

    /// Opens the container at `url`, or makes it, and calls `body` with it. If another process meanwhile removes the container,
    /// because it had made it for work that failed, this begins again with a new one.
    ///
    /// - Throws: ``StoreError`` as `init(openingOrCreatingAt:environment:)`, and what `body` throws.
    package static func withContainer<Result>(
        openingOrCreatingAt url: URL, environment: StoreEnvironment = .development,
        _ body: (ContainerDirectory) throws(StoreError) -> Result
    ) throws(StoreError) -> Result {
        try repeatingWhereRemoved { () throws(StoreError) in
            let container = try ContainerDirectory(openingOrCreatingAt: url, environment: environment)
            do throws(StoreError) {
                return try body(container)
            } catch {
                // Whatever the error of the body is, its cause is that the container has gone.
                try container.checkPlace()
                throw error
            }
        } isRemoved: {
            $0.code == .moved
        }
    }

    /// How often a container may disappear before the call gives up. Each time, another process has failed.
    package static let attempts = 50

    private static func repeatingWhereRemoved<Result>(
        _ body: () throws(StoreError) -> Result, isRemoved: (StoreError) -> Bool
    ) throws(StoreError) -> Result {
        for _ in 1..<attempts {
            do {
                return try body()
            } catch {
                guard isRemoved(error) else { throw error }
                // The process that removes the container holds its locks for some milliseconds.
                usleep(2_000)
            }
        }
        return try body()
    }

    /// Returns whether nothing exists at `url`, or an empty folder.
    private static func isEmpty(_ url: URL) -> Bool {
        if access(url.path, F_OK) != 0 { return errno == ENOENT }
        do {
            return try FileManager.default.contentsOfDirectory(atPath: url.path).isEmpty
        } catch {
            return access(url.path, F_OK) != 0 && errno == ENOENT
        }
    }

    /// Opens the container at `url`, or makes it, in one attempt.
    ///
    /// - Throws: As `init(openingOrCreatingAt:environment:)`, and possibly another error where a process removes the folder
    ///   meanwhile.
    private init(openingOrCreatingOnceAt url: URL, environment: StoreEnvironment) throws(StoreError) {
        let files = FileManager.default
        var isDirectory: ObjCBool = false
        let exists = files.fileExists(atPath: url.path, isDirectory: &isDirectory)
        if exists, !isDirectory.boolValue {
            throw StoreError(.cannotCreate, "cannot make a container at \(url.path): a file is there")
        }
        let file = url.appendingPathComponent("container.json")
        if exists, files.fileExists(atPath: file.path) {
            self = try ContainerDirectory(openingAt: url)
            return
        }
        try MoveJournal.checkCounts(url)
        do {
            // A new container gets its description first. So files of a container without a description mean that it was lost. If
            // there is a description now, another process has just made the container.
            if exists, try files.contentsOfDirectory(atPath: url.path).contains(where: { !Self.isOurs($0) }) {
                throw StoreError(
                    .cannotCreate,
                    "cannot make a container in \(url.path): it holds other files. Name an empty or a new directory")
            }
            try Folder.make(url, mode: 0o700)
            let description = Description(
                format: Self.format, identity: UUID(), name: url.deletingPathExtension().lastPathComponent,
                environment: environment)
            // Of processes that make it at once, one succeeds, and the others open its container.
            guard try DurableFile.create(description, at: file) else {
                self = try ContainerDirectory(openingAt: url)
                return
            }
            do {
                try MoveJournal.checkCounts(url)
            } catch {
                // A move has just claimed the place.
                try DurableFile.remove(file.lastPathComponent, in: url)
                throw StoreError(.cannotCreate, error.message)
            }
            place = ContainerPlace(of: file)
            migrations = .stores
            self.description = description
            self.url = url
            isNew = true
        } catch let error as StoreError where error.code == .cannotCreate || error.code == .diskFull {
            throw error
        } catch {
            let reason = (error as? StoreError)?.message ?? error.localizedDescription
            throw StoreError(.cannotCreate, "cannot make a container at \(url.path): \(reason)")
        }
    }

    /// Returns whether a file may be in a directory in which a container was begun, or whose description was lost.
    private static func isOurs(_ name: String) -> Bool {
        name == ContainerContents.description || scopes.contains { name.hasPrefix("\($0.name).sqlite") } || name == "assets"
            || name == "staging" || name == "notifier" || name == ContainerContents.syncLock
            || name == ContainerContents.downloads
            || ContainerContents.isCredential(name) || name == Quarantine.folder || name.hasPrefix(".")
    }
}
