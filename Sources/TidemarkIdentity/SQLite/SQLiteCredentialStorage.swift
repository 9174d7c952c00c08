import Foundation
import GRDB
import TidemarkCloudEngine
import TidemarkModel
import TidemarkSQLite

/// Stores credentials in `access.sqlite`, in the directory of an embedded cloud.
///
/// The signed requests that have come are in this process's memory, since its start: see ``ReplayMemory``.
final class SQLiteCredentialStorage: CredentialStorage {
    let writer: CredentialWriter
    let cache: SQLiteCredentialCache
    let notedSince: Int64?
    private let replays = LockedValue<[String: ReplayMemory]>([:])

    /// Opens the file, and makes it if it is not there.
    ///
    /// - Parameters:
    ///   - second: The present time, in seconds since 1970 UTC.
    ///   - random: Makes the secret of a new file.
    /// - Throws: ``CredentialError`` `untrusted` where other users may read the file and its mode can't be changed.
    init(at directory: URL, second: Int64, random: (Int) -> [UInt8]) throws {
        try Folder.make(directory, mode: 0o700)
        let file = directory.appendingPathComponent(CredentialTables.file)
        try Self.makePrivate(file)
        let database = try SharedDatabase(
            at: file, migrations: CredentialTables.migrations, tables: CredentialTables.sql,
            pageSize: 4096, cacheSize: 2_000, prepare: { _ in })
        try Self.complete(database, random)
        writer = CredentialWriter(database)
        cache = try SQLiteCredentialCache(of: file)
        notedSince = second
    }

    /// Makes the file, or its mode, so that only its owner may read it. SQLite gives the files beside it the same mode.
    ///
    /// A file that exists is not opened: closing it would release the locks that SQLite has on it in this process.
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

    /// Held while the file is made, so that nothing else in this process has it open then.
    private static let beginning = LockedValue(())

    /// Adds what a file lacks: the secret, and tables and columns that were added later.
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

    // For every request

    func current() throws -> StoredCredentials { try cache.current() }

    /// ``current()`` looks at the file each time.
    func refresh() async throws {}

    func session(_ id: [UInt8]) async throws -> StoredSession? { try cache.session(id) }

    func admit(
        _ mark: [UInt8], of key: String, signed second: Int64, at now: Int64, tolerance: Int64
    ) async throws -> SignedRequestAdmission {
        if let notedSince, second <= notedSince { return .beforeStart }
        return replays.withLock { memories in
            do throws(SignatureFailure) {
                // 100,000 in ten minutes are some 4 MB.
                try memories[key, default: ReplayMemory(capacity: 100_000)].admit(.init(r: mark), signed: second, at: now)
                return .admitted
            } catch {
                return error == .forgotten ? .forgotten : .replayed
            }
        }
    }

    // Containers, tokens, keys, and the secret

    func addContainer(_ name: String, at time: Int64) async throws {
        try await writer.write { db in
            try db.execute(
                sql: "INSERT INTO containers (name, added) VALUES (?, ?) ON CONFLICT DO NOTHING", arguments: [name, time])
            try CredentialTables.bump(db)
        }
    }

    func removeContainer(_ name: String) async throws -> Bool {
        try await writer.write { db in try CredentialTables.delete(from: "containers", where: "name", is: name, db) }
    }

    func add(_ token: StoredAPIToken) async throws -> CredentialAddition {
        try await writer.write { db in
            guard try CredentialTables.hasContainer(token.container, db) else { return .containerIsNotServed }
            try db.execute(
                sql: """
                    INSERT INTO tokens (id, digest, container, environment, name, redirect, popup, origins, made)
                    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    token.id, Data(token.digest), token.container, token.environment.rawValue, token.name, token.redirect,
                    token.popup, String(decoding: try JSONEncoder().encode(token.origins), as: UTF8.self), token.made,
                ])
            try CredentialTables.bump(db)
            return .added
        }
    }

    func removeAPIToken(_ id: String) async throws -> Bool {
        try await writer.write { db in try CredentialTables.delete(from: "tokens", is: id, db) }
    }

    func add(_ key: StoredServerKey) async throws -> CredentialAddition {
        try await writer.write { db in
            guard try CredentialTables.hasContainer(key.container, db) else { return .containerIsNotServed }
            let isThere = try Bool.fetchOne(db, sql: "SELECT EXISTS (SELECT 1 FROM keys WHERE id = ?)", arguments: [key.id])
            guard isThere == false else { return .exists }
            try db.execute(
                sql: """
                    INSERT INTO keys (id, container, environment, name, account, public_key, made) VALUES (?, ?, ?, ?, ?, ?, ?)
                    """,
                arguments: [
                    key.id, key.container, key.environment.rawValue, key.name, key.account, Data(key.publicKey), key.made,
                ])
            try CredentialTables.bump(db)
            return .added
        }
    }

    func removeKey(_ id: String) async throws -> Bool {
        try await writer.write { db in try CredentialTables.delete(from: "keys", is: id, db) }
    }

    func replaceSecret(by secret: [UInt8], keepingPreviousUntil until: Int64?) async throws -> Int {
        try await writer.write { db in
            var ended = 0
            if let until {
                let before = try Data.fetchOne(
                    db, sql: "SELECT content FROM secrets WHERE name = ?", arguments: [CredentialTables.secret])
                try db.execute(
                    sql: "INSERT OR REPLACE INTO secrets (name, content) VALUES (?, ?)",
                    arguments: [CredentialTables.previousSecret, Data(until.bytesInOrder) + (before ?? Data())])
            } else {
                try db.execute(sql: "DELETE FROM secrets WHERE name = ?", arguments: [CredentialTables.previousSecret])
                try db.execute(sql: "DELETE FROM sessions")
                ended = db.changesCount
                try db.execute(sql: "DELETE FROM console_sessions")
            }
            try db.execute(
                sql: "UPDATE secrets SET content = ? WHERE name = ?", arguments: [Data(secret), CredentialTables.secret])
            try CredentialTables.bump(db)
            return ended
        }
    }
}
