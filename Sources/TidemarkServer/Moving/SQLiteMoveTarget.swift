import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres
import TidemarkSQLite

/// A directory as the target of a move. It is filled in a hidden directory beside its place, and moves there as a whole.
final class SQLiteMoveTarget: SQLiteMoveSide, MoveTarget, @unchecked Sendable {
    private let place: URL
    private let lock: TargetLock
    /// Numbers of owners, by containers and names.
    private let owners = LockedValue<[String: [Data: Int64]]>([:])

    /// The lock of the one process that fills the directory.
    private final class TargetLock: @unchecked Sendable {
        private let lock: StoreLock

        init(in directory: URL, for place: URL) throws {
            let lock = try StoreLock(at: directory.appendingPathComponent(SQLiteMoveTarget.lockFile))
            guard try lock.acquireIfFree() else {
                throw MoveError(.busy, "another process moves a cloud to \(place.path); wait until it is done")
            }
            self.lock = lock
        }
    }

    /// Returns the hidden directory in which the cloud for a place is made.
    private static func hidden(beside place: URL) -> URL {
        place.deletingLastPathComponent().appendingPathComponent(".\(place.lastPathComponent).moving", isDirectory: true)
    }

    /// Returns whether a move to a place has begun and is not finished.
    static func isUnfinished(to place: URL) -> Bool { FileManager.default.fileExists(atPath: hidden(beside: place).path) }

    private static let lockFile = ".lock"
    private static let stateFile = ".move.json"

    /// - Parameter place: The place of the cloud, where nothing but an empty folder may be.
    init(target place: URL) throws {
        let entries =
            FileManager.default.fileExists(atPath: place.path)
            ? try FileManager.default.contentsOfDirectory(atPath: place.path) : []
        guard entries.isEmpty else {
            throw MoveError(
                .occupied,
                EmbeddedCloud.exists(at: place)
                    ? "\(place.path) holds another cloud; name a new directory"
                    : "\(place.path) holds other files; name a new directory")
        }
        let making = SQLiteMoveTarget.hidden(beside: place)
        try Folder.make(making, mode: 0o700)
        lock = try TargetLock(in: making, for: place)
        self.place = place
        super.init(making: making, for: place)
    }

    override func open(_ url: URL) throws -> DatabaseQueue {
        var configuration = Configuration()
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA cache_size = -64000") }
        return try DatabaseQueue(path: url.path, configuration: configuration)
    }

    func state() async throws -> MoveState? {
        let file = directory.appendingPathComponent(Self.stateFile)
        guard FileManager.default.fileExists(atPath: file.path) else { return nil }
        return try JSONDecoder().decode(MoveState.self, from: Data(contentsOf: file))
    }

    func save(_ state: MoveState) async throws {
        try JSONEncoder().encode(state).write(to: directory.appendingPathComponent(Self.stateFile), options: .atomic)
    }

    func make(_ containers: [MovedContainer]) async throws {
        _ = try EmbeddedCloud(at: directory)
        _ = try CredentialStore(at: directory)
        _ = try SubscriptionStore(at: directory)
        for container in containers {
            let file = directory.appendingPathComponent(Self.file(of: container))
            try Folder.make(file.deletingLastPathComponent(), mode: 0o700)
            _ = try SQLiteCloudStorage(at: file)
            guard let queue = try queue(Self.file(of: container)) else { continue }
            try await queue.write { db in
                let key = try Data.fetchOne(db, sql: "SELECT content FROM documents WHERE name = 'key'")
                // A container that was made before is complete.
                guard key != container.key else { return }
                let put = "INSERT OR REPLACE INTO documents (name, content) VALUES (?, ?)"
                try db.execute(sql: put, arguments: ["key", container.key])
                try db.execute(sql: put, arguments: ["began", Data("\(container.began)".utf8)])
                if let schema = container.schema {
                    try db.execute(sql: put, arguments: ["schema", schema])
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO counters (name, value) VALUES ('schema', ?)",
                        arguments: [Int64.random(in: .min ... .max)])
                }
                if container.commonChanges != 0 {
                    try db.execute(
                        sql: "INSERT OR REPLACE INTO counters (name, value) VALUES ('change', ?)",
                        arguments: [container.commonChanges])
                }
                try db.execute(sql: "DELETE FROM incarnations")
            }
        }
    }

    func write(secrets: [String: Data]) async throws {
        guard !secrets.isEmpty, let queue = try queue("access.sqlite") else { return }
        try await queue.write { db in
            for (name, content) in secrets {
                try db.execute(sql: "INSERT OR REPLACE INTO secrets (name, content) VALUES (?, ?)", arguments: [name, content])
            }
            try db.execute(sql: "UPDATE counters SET revision = revision + 1")
        }
    }

    func write(_ rows: [MovedRow], to table: MovedTable, in container: MovedContainer?, _ state: MoveState) async throws {
        let file = Self.file(of: table, in: container)
        if !rows.isEmpty {
            guard let queue = try queue(file) else { throw MoveError(.io, "\(directory.path)/\(file) is missing") }
            try await queue.write { [self] db in
                let insert = try db.cachedStatement(sql: Self.insert(table))
                for row in rows {
                    var arguments: [(any DatabaseValueConvertible)?] = []
                    for (value, column) in zip(row, table.columns) {
                        arguments.append(try argument(value, column.kind, file, table, db))
                    }
                    try insert.execute(arguments: StatementArguments(arguments))
                }
            }
        }
        try await save(state)
    }

    /// Makes the statement that inserts rows. Existing rows stay.
    private static func insert(_ table: MovedTable) -> String {
        let owner = table.columns.firstIndex { $0.kind == .owner }.map { "?\($0 + 1)" } ?? ""
        let zone = table.columns.firstIndex { $0.name == "zone" }.map { "?\($0 + 1)" } ?? ""
        var (names, values): ([String], [String]) = ([], [])
        for (place, column) in table.columns.enumerated() {
            names.append(column.sqlite)
            switch column.kind {
            case .integer, .flag, .bytes, .found, .owner: values.append("?\(place + 1)")
            case .name, .text, .texts: values.append("CAST(?\(place + 1) AS TEXT)")
            case .record:
                values.append(
                    "(SELECT id FROM records WHERE owner = \(owner) AND zone = \(zone) AND name = CAST(?\(place + 1) AS TEXT))")
            }
        }
        if table.name == "zones" {
            names.append("owner_name")
            values.append("(SELECT name FROM owners WHERE number = \(owner))")
        }
        let end = table.name == "owners" ? " ON CONFLICT (name) DO UPDATE SET change = excluded.change" : ""
        return """
            INSERT \(end.isEmpty ? "OR IGNORE" : "") INTO \(table.name) (\(names.joined(separator: ", ")))
            VALUES (\(values.joined(separator: ", ")))\(end)
            """
    }

    private func argument(
        _ value: MovedValue, _ kind: MovedColumn.Kind, _ file: String, _ table: MovedTable, _ db: Database
    ) throws -> (any DatabaseValueConvertible)? {
        switch (value, kind) {
        case (.null, _): nil
        case (.integer(let number), _): number
        case (.bytes(let name), .owner): try number(of: name, file, table, db)
        case (.bytes(let bytes), .found): IndexValue(sortable: bytes)?.databaseValue
        case (.bytes(let bytes), _): bytes
        }
    }

    /// Returns the number of an owner, and gives the owner one if it has none.
    private func number(of owner: Data, _ file: String, _ table: MovedTable, _ db: Database) throws -> Int64 {
        if table.name == "writers", owner.isEmpty { return 0 }
        if let known = owners.withLock({ $0[file]?[owner] }) { return known }
        try db.execute(sql: "INSERT OR IGNORE INTO owners (name, change) VALUES (CAST(? AS TEXT), 0)", arguments: [owner])
        let number =
            try Int64.fetchOne(db, sql: "SELECT number FROM owners WHERE name = CAST(? AS TEXT)", arguments: [owner]) ?? -1
        owners.withLock { owners in
            // A transaction that fails ends the program, so none of its numbers is used later.
            if owners[file]?.count ?? 0 > 100_000 { owners[file] = [:] }
            owners[file, default: [:]][owner] = number
        }
        return number
    }

    func finish(_ state: MoveState) async throws {
        try await queue("access.sqlite")?.write { db in try db.execute(sql: "UPDATE counters SET revision = revision + 1") }
        for file in ["accounts.sqlite", "access.sqlite", "subscriptions.sqlite"] + (try await containers().map(Self.file(of:))) {
            try await queue(file)?.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)") }
        }
        await close()
        try FileManager.default.removeItem(at: directory.appendingPathComponent(Self.stateFile))
        try FileManager.default.removeItem(at: directory.appendingPathComponent(Self.lockFile))
        try EmbeddedCloud.put(directory, at: place)
    }
}

extension IndexValue {
    fileprivate var databaseValue: DatabaseValue {
        switch self {
        case .integer(let number): number.databaseValue
        case .real(let number): number.databaseValue
        case .text(let text): text.databaseValue
        case .bytes(let data): data.databaseValue
        }
    }
}
