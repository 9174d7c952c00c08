public import Foundation
import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

/// The credentials of a served cloud: containers, tokens of programs, keys of servers, passwords and sessions.
///
/// The store has the rules. Its rows are in a storage: a file beside an embedded cloud's accounts, or PostgreSQL. Several
/// processes may use either at the same time.
///
/// ```swift
/// let credentials = try CredentialStore(at: directory)
/// try await credentials.addContainer("iCloud.org.example.journal")
/// try await credentials.setPassword("correct horse", of: anna.id)
/// let result = try await credentials.signIn("correct horse", account: anna.id, container: "iCloud.org.example.journal", kind: .device)
/// let token = result.grant
/// ```
///
/// A server calls ``hasContainer(_:)``, ``apiToken(_:)`` and ``key(_:)`` for each request. They take some microseconds and do not
/// wait. Their answers are as new as the last call of ``session(_:)`` or ``refresh()``, or newer: a request calls one of these
/// first. A function that changes the store returns when the change is durable.
public final class CredentialStore: Sendable {
    /// The directory of the cloud whose credentials these are; `nil` where they are in no directory.
    public let directory: URL?
    let storage: any CredentialStorage
    let cache: CredentialCache
    let hashers: PasswordHashers
    let cost: PasswordHash.Cost
    let uses = LockedValue(SessionUses())
    let codes = LockedValue(CodeAttempts())
    let now: @Sendable () -> Int64
    let random: @Sendable (Int) -> [UInt8]

    /// The time by which sessions end: microseconds since 1970 UTC.
    package var time: Int64 { now() }

    /// Opens the credential store of a cloud's directory, making both if they are not there.
    ///
    /// - Parameter hashesAtOnce: How many passwords are hashed at once, each in 128 MB.
    /// - Throws: ``CredentialError`` `storage`, `busy`, or `untrusted` when other users may read the file and its mode can't be
    ///   changed.
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

    /// - Parameter logN: The cost of a password's hash, as a power of two: low in tests, which should be fast.
    package convenience init(
        at directory: URL, now: @escaping @Sendable () -> Int64, passwordLogN logN: Int
    ) throws(CredentialError) {
        try self.init(
            at: directory, now: now, random: EmbeddedCloud.systemRandom, cost: .init(logN: Int64(logN), r: 8, p: 1))
    }

    convenience init(
        at directory: URL, now: @escaping @Sendable () -> Int64, random: @escaping @Sendable (Int) -> [UInt8],
        cost: PasswordHash.Cost, hashers: PasswordHashers = PasswordHashers()
    ) throws(CredentialError) {
        let storage: SQLiteCredentialStorage
        do {
            storage = try SQLiteCredentialStorage(at: directory, second: now() / 1_000_000, random: random)
        } catch {
            throw CredentialError(storage: error)
        }
        try self.init(storage, directory: directory, now: now, random: random, cost: cost, hashers: hashers)
    }

    /// Makes a credential store over a storage.
    ///
    /// - Parameters:
    ///   - hashesAtOnce: How many passwords are hashed at once, each in 128 MB.
    ///   - logN: The cost of a password's hash, as a power of two: low in tests, which should be fast. `nil` for the usual cost.
    package convenience init(
        _ storage: any CredentialStorage, hashesAtOnce: Int = 1, now: @escaping @Sendable () -> Int64 = Timestamp.now,
        passwordLogN logN: Int? = nil
    ) throws(CredentialError) {
        try self.init(
            storage, directory: nil, now: now, random: EmbeddedCloud.systemRandom,
            cost: logN.map { .init(logN: Int64($0), r: 8, p: 1) } ?? .usual, hashers: PasswordHashers(count: hashesAtOnce))
    }

    private init(
        _ storage: any CredentialStorage, directory: URL?, now: @escaping @Sendable () -> Int64,
        random: @escaping @Sendable (Int) -> [UInt8], cost: PasswordHash.Cost, hashers: PasswordHashers
    ) throws(CredentialError) {
        cache = try CredentialCache(storage)
        (self.storage, self.directory) = (storage, directory)
        (self.cost, self.hashers) = (cost, hashers)
        self.now = Timestamp.bounded(now)
        self.random = random
    }

    /// Calls a body that uses the storage, and converts its errors to ``CredentialError``.
    func stored<Result>(_ body: () async throws -> Result) async throws(CredentialError) -> Result {
        do {
            return try await body()
        } catch {
            throw CredentialError(storage: error)
        }
    }

    /// Makes later answers about containers, tokens, keys and signatures at least as new as this call, whatever process has
    /// changed them. A request calls it before it asks for them, unless it calls ``session(_:)``.
    ///
    /// With a directory it takes no time. With another storage it takes a round trip, which concurrent requests share.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`.
    public func refresh() async throws(CredentialError) { try await stored { try await storage.refresh() } }

    /// Whether a directory has a credential store.
    public static func exists(at directory: URL) -> Bool {
        FileManager.default.fileExists(atPath: directory.appendingPathComponent(CredentialTables.file).path)
    }

    // Containers

    /// Makes sure that a name can be a container's: letters, digits, hyphens, underscores and single dots.
    ///
    /// - Throws: ``CredentialError`` `invalid`.
    public static func check(container name: String) throws(CredentialError) {
        do {
            try EmbeddedCloud.check(container: name)
        } catch {
            throw CredentialError(storage: error)
        }
    }

    /// Adds a container to the served ones. Does nothing if it is served already.
    ///
    /// - Throws: ``CredentialError`` `invalid` for a name that no container can have, `storage`, `busy`.
    public func addContainer(_ name: String) async throws(CredentialError) {
        try Self.check(container: name)
        let added = now()
        try await stored { try await storage.addContainer(name, at: added) }
    }

    /// Ends serving a container. Its records, tokens and keys stay, and are valid again if it is added again.
    ///
    /// - Throws: ``CredentialError`` `notFound`, `storage`, `busy`.
    public func removeContainer(_ name: String) async throws(CredentialError) {
        guard try await stored({ try await storage.removeContainer(name) }) else { throw Self.noContainer(name) }
    }

    /// The containers that are served, by name.
    public func containers() throws(CredentialError) -> [String] { try cache.look { $0.containers.keys.sorted() } }

    /// Whether a container is served.
    public func hasContainer(_ name: String) throws(CredentialError) -> Bool { try cache.look { $0.containers[name] != nil } }

    static func noContainer(_ name: String) -> CredentialError {
        CredentialError(.notFound, "no container '\(name.prefix(100))' is served; add it by 'tidemark admin container add'")
    }

    /// Checks the name of a token or a key, which is for people.
    static func checkedName(_ name: String) throws(CredentialError) -> String {
        guard name.utf8.count <= 255 else { throw CredentialError(.invalid, "the name '\(name.prefix(50))…' has over 255 bytes") }
        return name
    }
}
