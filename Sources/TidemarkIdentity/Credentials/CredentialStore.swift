public import Foundation
import GRDB
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkSQLite

/// Who may come in to a cloud that is served: containers, tokens of programs, keys of servers, passwords and sessions.
///
/// It lies beside an embedded cloud's accounts, and several processes may use it at the same time.
///
/// ```swift
/// let credentials = try CredentialStore(at: directory)
/// try await credentials.addContainer("iCloud.org.example.journal")
/// try await credentials.setPassword("correct horse", of: anna.id)
/// let token = try await credentials.signIn("correct horse", account: anna.id, container: "iCloud.org.example.journal", kind: .device)
/// ```
///
/// What a server asks with each request, ``hasContainer(_:)``, ``apiToken(_:)``, ``key(_:)`` and ``session(_:)``, takes some microseconds and
/// does not wait. What changes the credential store writes to disk first.
public final class CredentialStore: Sendable {
    /// The directory of the cloud whose credentials these are.
    public let directory: URL
    let writer: CredentialWriter
    let cache: CredentialCache
    let hashers: PasswordHashers
    let cost: PasswordHash.Cost
    let replays = LockedValue<[String: ReplayMemory]>([:])
    let uses = LockedValue(SessionUses())
    /// The second in which the credential store was opened: what came before, or earlier in it, nobody remembers.
    let started: Int64
    let now: @Sendable () -> Int64
    let random: @Sendable (Int) -> [UInt8]

    /// Opens the credential store of a cloud's directory, making both if they are not there.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`, or `untrusted` when others may read the file and it is not one's own.
    ///
    /// - Parameter hashesAtOnce: How many passwords are hashed at once, each in 128 MB.
    public convenience init(at directory: URL, hashesAtOnce: Int = 1) throws(CredentialError) {
        try self.init(
            at: directory, now: Timestamp.now, random: EmbeddedCloud.systemRandom, cost: .usual,
            hashers: PasswordHashers(count: hashesAtOnce))
    }

    package convenience init(
        at directory: URL, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8] = EmbeddedCloud.systemRandom
    ) throws(CredentialError) {
        try self.init(at: directory, now: now, random: random, cost: .usual)
    }

    /// - Parameter logN: How much a password costs, for tests, which should not take long.
    package convenience init(
        at directory: URL, now: @escaping @Sendable () -> Int64, passwordLogN logN: Int
    ) throws(CredentialError) {
        try self.init(
            at: directory, now: now, random: EmbeddedCloud.systemRandom, cost: .init(logN: Int64(logN), r: 8, p: 1))
    }

    init(
        at directory: URL, now: @escaping @Sendable () -> Int64, random: @escaping @Sendable (Int) -> [UInt8],
        cost: PasswordHash.Cost, hashers: PasswordHashers = PasswordHashers()
    ) throws(CredentialError) {
        do {
            try Folder.make(directory, mode: 0o700)
            let file = directory.appendingPathComponent(CredentialTables.file)
            try Self.makePrivate(file)
            let database = try SharedDatabase(
                at: file, migrations: CredentialTables.migrations, tables: CredentialTables.sql,
                pageSize: 4096, cacheSize: 2_000, prepare: { _ in })
            try Self.complete(database, random)
            writer = CredentialWriter(database)
            cache = try CredentialCache(of: file)
        } catch {
            throw CredentialError(storage: error)
        }
        self.directory = directory
        (self.cost, self.hashers) = (cost, hashers)
        self.now = now
        self.random = random
        started = now() / 1_000_000
    }

    /// Whether a directory has a credential store.
    public static func exists(at directory: URL) -> Bool {
        FileManager.default.fileExists(atPath: directory.appendingPathComponent(CredentialTables.file).path)
    }

    /// Makes the file as one that only its owner may read; SQLite gives what it puts beside it the same mode.
    ///
    /// A file that is there is not opened: closing it would release the locks that SQLite has on it in this process.
    private static func makePrivate(_ file: URL) throws(CredentialError) {
        func failure(_ what: String) -> CredentialError {
            CredentialError(.storage, "cannot \(what) \(file.path): \(String(cString: strerror(errno)))")
        }
        try beginning.withLock { _ throws(CredentialError) in
            let made = openat(AT_FDCWD, file.path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
            guard made < 0 else {
                close(made)
                return
            }
            guard errno == EEXIST else { throw failure("make") }
        }
        var status = stat()
        guard lstat(file.path, &status) == 0 else { throw failure("look at") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw CredentialError(.storage, "\(file.path) is not a file") }
        guard status.st_mode & 0o077 != 0, chmod(file.path, 0o600) != 0 else { return }
        throw CredentialError(
            .untrusted, "others may read \(file.path), which has secrets; have its owner keep it from them: chmod 600")
    }

    /// While the file is made, no other opening of this process has it open.
    private static let beginning = LockedValue(())

    /// Gives a file what it lacks: the secret, and tables and columns that came later.
    private static func complete(_ database: SharedDatabase, _ random: (Int) -> [UInt8]) throws {
        let isComplete = try database.reader.read { db in
            guard try CredentialTables.areComplete(db) else { return false }
            return try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM secrets WHERE name = 'secret')") ?? false
        }
        guard !isComplete else { return }
        try database.write { db in
            try CredentialTables.complete(db)
            try db.execute(
                sql: "INSERT INTO secrets (name, content) VALUES ('secret', ?) ON CONFLICT DO NOTHING",
                arguments: [Data(random(32))])
        }
    }

    // Containers

    /// Makes sure that a container can have a name: letters, digits, hyphens, underscores and single dots.
    ///
    /// - Throws: ``CredentialError`` `invalid`.
    public static func check(container name: String) throws(CredentialError) {
        do {
            try EmbeddedCloud.check(container: name)
        } catch {
            throw CredentialError(storage: error)
        }
    }

    /// Has a container be served; one that is already stays so.
    ///
    /// - Throws: ``CredentialError`` `invalid` for a name that no container can have, `storage`, `busy`.
    public func addContainer(_ name: String) async throws(CredentialError) {
        try Self.check(container: name)
        let added = now()
        try await writer.write { db in
            try db.execute(
                sql: "INSERT INTO containers (name, added) VALUES (?, ?) ON CONFLICT DO NOTHING", arguments: [name, added])
            try CredentialTables.bump(db)
        }
    }

    /// Has a container be served no longer. What is stored of it stays, and so do its tokens and keys, should it be added again.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func removeContainer(_ name: String) async throws(CredentialError) {
        try await writer.write { db in
            try CredentialTables.delete(from: "containers", where: "name", is: name, orThrow: Self.noContainer(name), db)
        }
    }

    /// The containers that are served, by name.
    public func containers() throws(CredentialError) -> [String] { try cache.look { $0.containers.keys.sorted() } }

    /// Whether a container is served.
    public func hasContainer(_ name: String) throws(CredentialError) -> Bool { try cache.look { $0.containers[name] != nil } }

    static func noContainer(_ name: String) -> CredentialError {
        CredentialError(.notFound, "no container '\(name.prefix(100))' is served; add it by 'tidemark admin container add'")
    }

    /// Makes sure that a container is served, in a transaction.
    static func demandContainer(_ name: String, _ db: Database) throws {
        let isThere = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM containers WHERE name = ?)", arguments: [name])
        guard isThere == true else { throw noContainer(name) }
    }

    /// A name that is given to a token or a key, for people.
    static func checkedName(_ name: String) throws(CredentialError) -> String {
        guard name.utf8.count <= 255 else { throw CredentialError(.invalid, "the name '\(name.prefix(50))…' has over 255 bytes") }
        return name
    }
}
