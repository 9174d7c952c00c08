import Foundation
import GRDB
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkPostgres
import TidemarkSQLite

/// A cloud in a directory, as the source of a move.
class SQLiteMoveSide: MoveSide, @unchecked Sendable {
    /// The directory that is read and written.
    let directory: URL
    /// The directory's name in messages.
    let name: String
    private let use: ExclusiveCloudUse?
    private let queues = LockedValue<[String: DatabaseQueue]>([:])

    /// Opens a cloud's directory, and keeps other processes from it.
    init(source directory: URL) throws {
        guard EmbeddedCloud.exists(at: directory) else {
            throw MoveError(.missing, "there is no cloud at \(directory.path); check the directory")
        }
        (self.directory, name) = (directory, directory.path)
        use = try ExclusiveCloudUse(of: directory)
        // A file of an earlier version may lack columns that were added later.
        if FileManager.default.fileExists(atPath: directory.appendingPathComponent("access.sqlite").path) {
            _ = try CredentialStore(at: directory)
        }
        for (container, _, file) in try EmbeddedCloud.databases(in: directory) {
            try SharedDatabase.watcher(of: file).read { db in try SQLiteCloudStorage.check(db, path: "the container \(container)")
            }
        }
    }

    /// - Parameter directory: The hidden directory in which the cloud for a place is made.
    init(making directory: URL, for place: URL) {
        (self.directory, name, use) = (directory, place.path, nil)
    }

    func checkIsUnused() async throws {}

    func close() async { queues.withLock { $0 = [:] } }

    /// Returns the database of a file in the directory; `nil` where there is none.
    func queue(_ file: String) throws -> DatabaseQueue? {
        try queues.withLock { queues in
            if let known = queues[file] { return known }
            let url = directory.appendingPathComponent(file)
            guard FileManager.default.fileExists(atPath: url.path) else { return nil }
            let opened = try open(url)
            queues[file] = opened
            return opened
        }
    }

    func open(_ url: URL) throws -> DatabaseQueue { try SharedDatabase.watcher(of: url) }

    static func file(of table: MovedTable, in container: MovedContainer?) -> String {
        if let container { return file(of: container) }
        if table.name == "accounts" { return "accounts.sqlite" }
        return MovedTable.ofSubscriptions.contains { $0.name == table.name } ? "subscriptions.sqlite" : "access.sqlite"
    }

    static func file(of container: MovedContainer) -> String { "containers/\(container.path)/records.sqlite" }

    // Reading

    func containers() async throws -> [MovedContainer] {
        try EmbeddedCloud.databases(in: directory).map { name, environment, file in
            try SharedDatabase.watcher(of: file).read { db in
                func document(_ name: String) throws -> Data? {
                    try Data.fetchOne(db, sql: "SELECT content FROM documents WHERE name = ?", arguments: [name])
                }
                guard let key = try document("key"), let began = try document("began") else {
                    throw MoveError(
                        .missing,
                        "the container \(name) (\(environment.rawValue)) of \(directory.path) has no key; verify the cloud")
                }
                return MovedContainer(
                    name: name, environment: environment.rawValue, key: key,
                    began: Int64(String(decoding: began, as: UTF8.self)) ?? .max,
                    commonChanges: try Int64.fetchOne(db, sql: "SELECT value FROM counters WHERE name = 'change'") ?? 0,
                    schema: try document("schema"))
            }
        }.sorted { ($0.name, $0.environment) < ($1.name, $1.environment) }
    }

    func secrets() async throws -> [String: Data] {
        guard let queue = try queue("access.sqlite") else { return [:] }
        return try await queue.read { db in
            let rows = try Row.fetchAll(db, sql: "SELECT name, content FROM secrets WHERE name IN ('secret', 'secret.previous')")
            return try rows.reduce(into: [:]) { secrets, row in
                try secrets[row.decode(String.self, atIndex: 0)] = row.decode(Data.self, atIndex: 1)
            }
        }
    }

    func rows(
        of table: MovedTable, in container: MovedContainer?, after place: MovedRow?, limit: Int
    ) async throws -> (rows: [MovedRow], last: MovedRow?) {
        guard let queue = try queue(Self.file(of: table, in: container)) else { return ([], nil) }
        return try await queue.read { db in
            let select = try db.cachedStatement(sql: Self.select(table, isFirst: place == nil))
            var arguments: [(any DatabaseValueConvertible)?] = []
            for value in place ?? [] {
                switch value {
                case .integer(let number): arguments.append(number)
                case .bytes(let data): arguments.append(data)
                case .null: arguments.append(Data())
                }
            }
            arguments.append(limit)
            let cursor = try Row.fetchCursor(select, arguments: StatementArguments(arguments))
            var (rows, last): ([MovedRow], MovedRow?) = ([], nil)
            while let row = try cursor.next() {
                rows.append(try table.columns.indices.map { try Self.value(row, $0, table.columns[$0].kind) })
                guard rows.count == limit else { continue }
                last = try table.sqliteKey.indices.map { index in
                    let place = table.columns.count + index
                    return try table.hasBytes(table.sqliteKey[index])
                        ? .bytes(row.decode(atIndex: place)) : .integer(row.decode(atIndex: place))
                }
            }
            return (rows, last)
        }
    }

    func count(of table: MovedTable, in container: MovedContainer?) async throws -> Int {
        guard let queue = try queue(Self.file(of: table, in: container)) else { return 0 }
        return try await queue.read { db in
            try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table.name) t WHERE \(table.sqliteFilter)") ?? 0
        }
    }

    private static func select(_ table: MovedTable, isFirst: Bool) -> String {
        var columns = table.columns.map { column in
            switch column.kind {
            case .integer, .flag, .bytes, .found: "t.\(column.sqlite)"
            case .name, .text, .texts: "CAST(t.\(column.sqlite) AS BLOB)"
            case .owner: "CAST(coalesce(o.name, '') AS BLOB)"
            case .record: "CAST(r.name AS BLOB)"
            }
        }
        columns += table.sqliteKey.map { table.isText($0) ? "CAST(t.\($0) AS BLOB)" : "t.\($0)" }
        var from = "\(table.name) t" + (table.sqliteIndex.map { " INDEXED BY \($0)" } ?? "")
        var conditions = [table.sqliteFilter]
        if table.columns.contains(where: { $0.kind == .owner }) {
            from += " LEFT JOIN owners o ON o.number = t.owner"
            // Only writers from the time when all owners shared one counter have no owner.
            conditions.append(table.name == "writers" ? "(t.owner = 0 OR o.name <> '')" : "o.number IS NOT NULL")
        }
        if table.columns.contains(where: { $0.kind == .record }) { from += " CROSS JOIN records r ON r.id = t.record" }
        let key = table.sqliteKey.map { "t.\($0)" }.joined(separator: ", ")
        if !isFirst {
            let values = table.sqliteKey.map { table.isText($0) ? "CAST(? AS TEXT)" : "?" }.joined(separator: ", ")
            conditions.append("(\(key)) > (\(values))")
        }
        return """
            SELECT \(columns.joined(separator: ", ")) FROM \(from) WHERE \(conditions.joined(separator: " AND ")) ORDER BY \(key) LIMIT ?
            """
    }

    private static func value(_ row: Row, _ column: Int, _ kind: MovedColumn.Kind) throws -> MovedValue {
        switch kind {
        case .integer, .flag: return try row.decode(Int64?.self, atIndex: column).map { .integer($0) } ?? .null
        case .name, .bytes, .owner, .record: return try row.decode(Data?.self, atIndex: column).map { .bytes($0) } ?? .null
        case .text:
            guard let data = try row.decode(Data?.self, atIndex: column) else { return .null }
            // A text of PostgreSQL can't have U+0000.
            return .bytes(Data(String(decoding: data, as: UTF8.self).utf8.filter { $0 != 0 }))
        case .texts: return .bytes(try MovedTexts.canonical(row.decode(Data.self, atIndex: column)))
        case .found:
            let value: IndexValue? =
                switch (row[column] as DatabaseValue).storage {
                case .null: nil
                case .int64(let number): .integer(number)
                case .double(let number): .real(number)
                case .string(let text): .text(text)
                case .blob(let data): .bytes(data)
                }
            return value.map { .bytes($0.sortableBytes) } ?? .null
        }
    }

    func assets(of container: MovedContainer) -> any AssetStorage {
        EmbeddedCloud.assets(of: container.name, container.environment, in: directory)
    }

    func stamp() async throws -> String {
        var parts: [String] = []
        for container in try await containers() {
            guard let queue = try queue(Self.file(of: container)) else { continue }
            parts.append(
                try await queue.read { db in
                    let sql = """
                        SELECT (SELECT count(*) FROM records) || ' ' || coalesce((SELECT max(changed) FROM records), 0) || ' '
                            || coalesce((SELECT sum(change) FROM owners), 0)
                        """
                    return try String.fetchOne(db, sql: sql) ?? ""
                })
        }
        for (file, table) in [("access.sqlite", "sessions"), ("accounts.sqlite", "accounts")] {
            guard let queue = try queue(file) else { continue }
            parts.append(try await queue.read { db in "\(try Int.fetchOne(db, sql: "SELECT count(*) FROM \(table)") ?? 0)" })
        }
        return parts.joined(separator: " ")
    }
}

extension MovedTable {
    private func kind(ofSQLite name: String) -> MovedColumn.Kind? { columns.first { $0.sqlite == name }?.kind }

    /// Returns whether a column of SQLite's key is a text.
    fileprivate func isText(_ name: String) -> Bool {
        switch kind(ofSQLite: name) {
        case .name, .text, .texts: true
        default: false
        }
    }

    /// Returns whether a column of SQLite's key is a text or bytes.
    fileprivate func hasBytes(_ name: String) -> Bool { isText(name) || kind(ofSQLite: name) == .bytes }
}
