import Foundation
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkModel
import TidemarkPostgres

/// A cloud in a database, as the source or the target of a move.
final class PostgresMoveSide: MoveTarget {
    private let database: PostgresDatabase
    private let assetPlace: AssetPlace
    /// The numbers of containers, by their paths.
    private let numbers = LockedValue<[String: Int64]>([:])
    /// The state of the move in the database, as this process last wrote it.
    private let noted = LockedValue<String?>(nil)

    var name: String { "the \(database.configuration.address.name)" }

    /// Opens a database, and brings its tables to their newest version.
    init(_ place: ServerConfiguration.Database) async throws(ServerError) {
        let database: PostgresDatabase
        do throws(PostgresError) {
            var configuration = PostgresConfiguration(try PostgresAddress(place.address))
            configuration.connections = place.connections
            configuration.preparesStatements = !place.isBehindPooler
            configuration.applicationName = "tidemark-move"
            configuration.statementTimeout = .seconds(600)
            database = PostgresDatabase(configuration)
        } catch {
            throw ServerError(storing: error)
        }
        self.database = database
        do {
            try await database.check()
            assetPlace = try AssetPlace(place.assets)
            try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
            _ = try await PostgresAccountStorage.open(database)
            _ = try await PostgresCredentialStorage.open(database)
            _ = try await PostgresSubscriptionStorage.open(database)
            try await assetPlace.tie(to: database)
            try await assetPlace.check()
        } catch {
            await database.close()
            throw ServerError(storing: error)
        }
    }

    func close() async { await database.close() }

    func checkIsUnused() async throws {
        let others: Int64 = try await database.query(
            """
            SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'tidemark' AND pid <> pg_backend_pid()
            """)[0].value(0)
        guard others == 0 else {
            throw MoveError(
                .busy,
                "\(name) is in use by servers or other commands (\(others) connections); stop them first, so that nothing changes meanwhile"
            )
        }
    }

    // Reading

    func containers() async throws -> [MovedContainer] {
        let rows = try await database.query(
            """
            SELECT c.number, c.name, c.environment, c.key, c.began, c.common_changes, s.content FROM tidemark_containers c
            LEFT JOIN tidemark_schemas s ON s.container = c.number ORDER BY c.name, c.environment
            """)
        var containers: [MovedContainer] = []
        for row in rows {
            let container = MovedContainer(
                name: try row.value(1), environment: try row.value(2), key: try row.value(3), began: try row.value(4),
                commonChanges: try row.value(5), schema: try row.value(6))
            let number: Int64 = try row.value(0)
            numbers.withLock { $0[container.path] = number }
            containers.append(container)
        }
        return containers
    }

    func secrets() async throws -> [String: Data] {
        let rows = try await database.query("SELECT secret, int8send(previous_until) || previous FROM credential_state")
        guard let row = rows.first else { return [:] }
        var secrets = ["secret": try row.value(0, as: Data.self)]
        secrets["secret.previous"] = try row.value(1, as: Data?.self)
        return secrets
    }

    private func number(of container: MovedContainer) throws -> Int64 {
        guard let number = numbers.withLock({ $0[container.path] }) else {
            throw MoveError(.missing, "\(name) has no container \(container.path)")
        }
        return number
    }

    func rows(
        of table: MovedTable, in container: MovedContainer?, after place: MovedRow?, limit: Int
    ) async throws -> (rows: [MovedRow], last: MovedRow?) {
        var parameters: [any PostgresParameter] = [Int64(limit)]
        var conditions = [table.postgresFilter]
        if let container {
            parameters.append(try number(of: container))
            conditions.append("t.container = $2")
        }
        let key = table.postgresKey.map { "t.\($0)" }.joined(separator: ", ")
        if let place {
            let first = parameters.count + 1
            for (value, column) in zip(place, table.postgresKeyPlaces) {
                parameters.append(Self.parameter(value, table.columns[column].kind))
            }
            conditions.append("(\(key)) > (\(place.indices.map { "$\(first + $0)" }.joined(separator: ", ")))")
        }
        let columns = table.columns.map { $0.kind == .texts ? "to_json(t.\($0.name))::text" : "t.\($0.name)" }
        let command = PostgresCommand(
            """
            SELECT \(columns.joined(separator: ", ")) FROM \(table.postgres) t WHERE \(conditions.joined(separator: " AND "))
            ORDER BY \(key) LIMIT $1
            """, parameters)
        let found = try await database.read { db in try db.run([command])[0] }
        var rows: [MovedRow] = []
        rows.reserveCapacity(found.count)
        for row in found {
            rows.append(try table.columns.indices.map { try Self.value(row, $0, table.columns[$0].kind) })
        }
        let last = rows.count < limit ? nil : rows.last.map { row in table.postgresKeyPlaces.map { row[$0] } }
        return (rows, last)
    }

    func count(of table: MovedTable, in container: MovedContainer?) async throws -> Int {
        let rows =
            if let container {
                try await database.query(
                    "SELECT count(*) FROM \(table.postgres) t WHERE t.container = $1 AND \(table.postgresFilter)",
                    number(of: container))
            } else { try await database.query("SELECT count(*) FROM \(table.postgres)") }
        return Int(try rows[0].value(0, as: Int64.self))
    }

    private static func value(_ row: PostgresRow, _ column: Int, _ kind: MovedColumn.Kind) throws -> MovedValue {
        switch kind {
        case .integer: try row.value(column, as: Int64?.self).map { .integer($0) } ?? .null
        case .flag: try row.value(column, as: Bool?.self).map { .integer($0 ? 1 : 0) } ?? .null
        case .name, .bytes, .owner, .record, .found: try row.value(column, as: Data?.self).map { .bytes($0) } ?? .null
        case .text: try row.value(column, as: String?.self).map { .bytes(Data($0.utf8)) } ?? .null
        case .texts: .bytes(try MovedTexts.canonical(Data(row.value(column, as: String.self).utf8)))
        }
    }

    private static func parameter(_ value: MovedValue, _ kind: MovedColumn.Kind) -> any PostgresParameter {
        switch (value, kind) {
        case (.integer(let number), .flag): number != 0
        case (.integer(let number), _): number
        case (.bytes(let data), .text): String(decoding: data, as: UTF8.self)
        case (.bytes(let data), _): data
        case (.null, _): Data?.none
        }
    }

    func assets(of container: MovedContainer) -> any AssetStorage {
        assetPlace.make(container.name, StoreEnvironment(rawValue: container.environment) ?? .development)
    }

    func stamp() async throws -> String {
        let rows = try await database.query(
            """
            SELECT (SELECT count(*) FROM tidemark_records)::text || ' ' || coalesce((SELECT max(changed) FROM tidemark_records), 0)::text
                || ' ' || coalesce((SELECT sum(change) FROM tidemark_owners), 0)::text
                || ' ' || (SELECT count(*) FROM sessions)::text || ' ' || (SELECT count(*) FROM accounts)::text
            """)
        return try rows[0].value(0)
    }

    // Writing

    func state() async throws -> MoveState? {
        _ = try await database.transaction { db in
            try db.query(
                """
                CREATE TABLE IF NOT EXISTS tidemark_moves (
                    is_only bool PRIMARY KEY CHECK (is_only), is_done bool NOT NULL, state text NOT NULL)
                """)
        }
        // A killed process may still have a transaction there.
        let found = try await database.transaction { db in try db.query("SELECT state FROM tidemark_moves FOR UPDATE") }
        if let row = found.first {
            let text: String = try row.value(0)
            noted.withLock { $0 = text }
            return try JSONDecoder().decode(MoveState.self, from: Data(text.utf8))
        }
        let isOccupied: Bool = try await database.query(
            """
            SELECT EXISTS (SELECT FROM tidemark_containers) OR EXISTS (SELECT FROM accounts) OR EXISTS (SELECT FROM served_containers)
            """)[0].value(0)
        guard !isOccupied else {
            throw MoveError(.occupied, "\(name) holds another cloud; name a database that is empty")
        }
        return nil
    }

    func save(_ state: MoveState) async throws {
        let note = try Note(state, after: noted.withLock { $0 }, in: name)
        try await database.transaction { db in try note.write(db) }
        noted.withLock { $0 = note.text }
    }

    /// The state of a move, to be written unless another process has written one meanwhile.
    private struct Note: Sendable {
        let text: String
        let before: String?
        let isDone: Bool
        let name: String

        init(_ state: MoveState, after before: String?, in name: String) throws {
            text = String(decoding: try JSONEncoder().encode(state), as: UTF8.self)
            (self.before, isDone, self.name) = (before, state.isDone, name)
        }

        /// Writes the state, with rows in the same round trip. The state comes first, so that another process waits for this one.
        func write(_ db: PostgresTransaction, _ rows: PostgresCommand? = nil) throws {
            let sql =
                before == nil
                ? "INSERT INTO tidemark_moves (is_only, is_done, state) VALUES (true, $2, $1) ON CONFLICT DO NOTHING"
                : "UPDATE tidemark_moves SET state = $1, is_done = $2 WHERE state = $3"
            var parameters: [any PostgresParameter] = [text, isDone]
            if let before { parameters.append(before) }
            var commands = [PostgresCommand(sql, parameters)]
            if let rows { commands.append(rows) }
            guard try db.run(commands)[0].affected == 1 else {
                throw MoveError(
                    .busy, "another process moves a cloud into \(name); wait until it is done, and look what is there")
            }
        }
    }

    func make(_ containers: [MovedContainer]) async throws {
        try await database.transaction { db in
            for container in containers {
                try db.enqueue(
                    """
                    INSERT INTO tidemark_containers (name, environment, key, began, common_changes) VALUES ($1, $2, $3, $4, $5)
                    ON CONFLICT DO NOTHING
                    """, container.name, container.environment, container.key, container.began, container.commonChanges)
                guard let schema = container.schema else { continue }
                try db.enqueue(
                    """
                    INSERT INTO tidemark_schemas (container, version, content)
                    SELECT number, $3, $4 FROM tidemark_containers WHERE name = $1 AND environment = $2 ON CONFLICT DO NOTHING
                    """, container.name, container.environment, Int64.random(in: 1 ... .max), schema)
            }
        }
        _ = try await self.containers()
    }

    func write(secrets: [String: Data]) async throws {
        guard let secret = secrets["secret"] else { return }
        let previous = secrets["secret.previous"]
        let until = previous?.prefix(8).reduce(0 as Int64) { $0 << 8 | Int64($1) }
        try await database.transaction { db in
            try db.enqueue(
                "UPDATE credential_state SET secret = $1, previous = $2, previous_until = $3, revision = \(PostgresCredentialStorage.revision)",
                secret,
                previous.map { Data($0.dropFirst(8)) }, until)
        }
    }

    func write(_ rows: [MovedRow], to table: MovedTable, in container: MovedContainer?, _ state: MoveState) async throws {
        let note = try Note(state, after: noted.withLock { $0 }, in: name)
        let command = rows.isEmpty ? nil : try insert(rows, table, container)
        try await database.transaction { db in try note.write(db, command) }
        noted.withLock { $0 = note.text }
    }

    private func insert(_ rows: [MovedRow], _ table: MovedTable, _ container: MovedContainer?) throws -> PostgresCommand {
        var (names, values): ([String], [String]) = ([], [])
        var parameters: [any PostgresParameter] = []
        if let container {
            names.append("container")
            values.append("$1")
            parameters.append(try number(of: container))
        }
        var arrays: [String] = []
        func add(_ name: String, _ array: any PostgresParameter, _ expression: (String) -> String = { $0 }) {
            names.append(name)
            values.append(expression("v.c\(arrays.count)"))
            parameters.append(array)
            arrays.append("$\(parameters.count)")
        }
        for (place, column) in table.columns.enumerated() {
            let content = rows.map { $0[place] }
            switch column.kind {
            case .integer: add(column.name, content.map(\.number))
            case .flag: add(column.name, content.map { $0.number.map { $0 != 0 } })
            case .name, .bytes, .owner, .record: add(column.name, content.map(\.data))
            case .text: add(column.name, content.map { $0.data.map { String(decoding: $0, as: UTF8.self) } })
            case .texts:
                add(column.name, content.map { $0.data.map { String(decoding: $0, as: UTF8.self) } }) {
                    "ARRAY(SELECT json_array_elements_text(\($0)::json))"
                }
            case .found:
                add(column.name, content.map(\.data))
                let places = content.map { $0.data.flatMap { IndexValue(sortable: $0)?.place } }
                add("latitude", places.map { $0?.latitude })
                add("longitude", places.map { $0?.longitude })
            }
        }
        if table.name == "subscriptions" {
            let places = rows.map(SubscriptionStore.place(ofMoved:))
            add("zone_owner", places.map { ($0?.zoneOwner).map { Data($0.utf8) } })
            add("zone", places.map { place in place.map { Data(($0.zone ?? "").utf8) } })
            add("record_type", places.map { ($0?.recordType).map { Data($0.utf8) } })
        }
        let columns = arrays.indices.map { "c\($0)" }.joined(separator: ", ")
        return PostgresCommand(
            """
            INSERT INTO \(table.postgres) (\(names.joined(separator: ", "))) \(table.hasIdentity ? "OVERRIDING SYSTEM VALUE" : "")
            SELECT \(values.joined(separator: ", ")) FROM unnest(\(arrays.joined(separator: ", "))) AS v (\(columns))
            ON CONFLICT DO NOTHING
            """, parameters)
    }

    func finish(_ state: MoveState) async throws {
        var done = state
        done.isDone = true
        let note = try Note(done, after: noted.withLock { $0 }, in: name)
        try await database.transaction(
            PostgresTransactionOptions(.readCommitted, isReadOnly: false, statementTimeout: .seconds(3_600))
        ) { db in
            // New numbers have to follow those that were moved.
            for (sequence, table, column) in [
                ("'tidemark_zone_numbers'", "tidemark_zones", "number"),
                ("'tidemark_share_numbers'", "tidemark_shares", "number"),
                ("pg_get_serial_sequence('tidemark_records', 'id')", "tidemark_records", "id"),
                ("pg_get_serial_sequence('tidemark_removals', 'id')", "tidemark_removals", "id"),
                ("pg_get_serial_sequence('tidemark_participants', 'ordinal')", "tidemark_participants", "ordinal"),
                ("pg_get_serial_sequence('audit_log', 'number')", "audit_log", "number"),
                ("pg_get_serial_sequence('devices', 'number')", "devices", "number"),
            ] {
                try db.query("SELECT setval(\(sequence), (SELECT coalesce(max(\(column)), 0) + 1 FROM \(table)), false)")
            }
            try db.enqueue("UPDATE credential_state SET revision = \(PostgresCredentialStorage.revision)")
            try note.write(db)
        }
        noted.withLock { $0 = note.text }
        // The planner has no statistics about so many new rows.
        try await database.transaction(
            PostgresTransactionOptions(.readCommitted, isReadOnly: false, statementTimeout: .seconds(3_600))
        ) { db in
            for table in MovedTable.ofContainers { try db.query("ANALYZE \(table.postgres)") }
        }
    }
}

extension MovedValue {
    /// The number; `nil` where there is none.
    var number: Int64? { if case .integer(let number) = self { number } else { nil } }
    /// The bytes; `nil` where there are none.
    var data: Data? { if case .bytes(let data) = self { data } else { nil } }
}

/// Lists of texts, as both kinds of storage have them.
enum MovedTexts {
    /// JSON of a list of texts, in one spelling.
    static func canonical(_ json: Data) throws -> Data {
        try JSONEncoder().encode(try JSONDecoder().decode([String].self, from: json))
    }
}
