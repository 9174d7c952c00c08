import Foundation
import GRDB
import TestServers
import TestSupport
import Testing
import TidemarkPostgres

@testable import TidemarkServer

/// Goal: a move copies every table and column of a cloud. Method: the tables of a cloud that was served from a directory and from
/// a database are compared with those that are moved. A column that is not moved is named here, with the reason.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct MovedColumnsTests {
    /// Columns, or whole tables, of the files of a directory.
    private static let leftInDirectory = [
        "records.sqlite documents.name": "the key, the time and the schema go with the container",
        "records.sqlite documents.content": "the key, the time and the schema go with the container",
        "records.sqlite counters.name": "the common changes go with the container, and the schema's version is drawn",
        "records.sqlite counters.value": "the common changes go with the container, and the schema's version is drawn",
        "records.sqlite owners.number": "a directory numbers owners, and a database does not",
        "records.sqlite zones.owner_name": "it is the name of the owner",
        "access.sqlite counters.revision": "it tells caches of changes, and goes on",
        "access.sqlite secrets.name": "secrets go by themselves",
        "access.sqlite secrets.content": "secrets go by themselves",
        "access.sqlite console_sessions": "sessions of the console end",
        "access.sqlite sync_failures": "the list of sync errors begins anew",
    ]

    /// Columns, or whole tables, of a database.
    private static let leftInDatabase = [
        "tidemark_containers.number": "a database numbers containers, and a directory does not",
        "tidemark_containers.name": "it goes with the container",
        "tidemark_containers.environment": "it goes with the container",
        "tidemark_containers.key": "it goes with the container",
        "tidemark_containers.began": "it goes with the container",
        "tidemark_containers.common_changes": "it goes with the container",
        "tidemark_containers.swept": "a turn to sweep begins anew",
        "tidemark_containers.sweep_renewed": "a turn to sweep begins anew",
        "tidemark_containers.sweep_owner": "a turn to sweep begins anew",
        "tidemark_schemas.content": "it goes with the container",
        "tidemark_schemas.version": "it is drawn",
        "tidemark_found.latitude": "it is made of the value",
        "tidemark_found.longitude": "it is made of the value",
        "tidemark_asset_place": "it is the directory of this database",
        "tidemark_migrations": "it tells which tables there are",
        "tidemark_moves": "it tells how far a move into this database is",
        "credential_state.is_only": "there is one row",
        "credential_state.revision": "it tells caches of changes, and goes on",
        "credential_state.secret": "secrets go by themselves",
        "credential_state.previous": "secrets go by themselves",
        "credential_state.previous_until": "secrets go by themselves",
        "signed_requests": "a server of a directory has it in memory",
        "sign_in_rates": "a server of a directory has it in memory",
        "console_sessions": "sessions of the console end",
        "sync_failures": "the list of sync errors begins anew",
        "account_containers": "user record names are made again",
        "account_names": "user record names are made again",
        "account_namings": "user record names are made again",
        "subscriptions.zone_owner": "it is made of the content",
        "subscriptions.zone": "it is made of the content",
        "subscriptions.record_type": "it is made of the content",
        "notifications": "a server of a directory has it in memory",
        "notification_waits": "a server of a directory has it in memory",
    ]

    private static let ofCloud = [MovedTable.ofAccounts] + MovedTable.ofCredentials + MovedTable.ofSubscriptions

    /// Compares columns, given as `table.column`.
    private func check(_ found: Set<String>, moved: Set<String>, left: [String: String], in place: String) {
        func table(_ column: String) -> String { String(column[..<(column.lastIndex(of: ".") ?? column.endIndex)]) }
        let tables = Set(found.map(table))
        let forgotten = found.subtracting(moved).filter { left[$0] == nil && left[table($0)] == nil }
        #expect(forgotten.isEmpty, "\(place): add to MovedTable, or here with a reason: \(forgotten.sorted())")
        let gone = moved.subtracting(found)
        #expect(gone.isEmpty, "\(place): MovedTable names what is not there: \(gone.sorted())")
        let idle = left.keys.filter { name in
            found.contains(name) ? moved.contains(name) : !tables.contains(name) || moved.contains { table($0) == name }
        }
        #expect(idle.isEmpty, "\(place): these are moved, or are not there: \(idle.sorted())")
    }

    @Test func `each column of each table is moved, or has a reason not to be`() async throws {
        let place = try await ServedMachines.started(people: ["anna"])
        try await place.signIn("laptop", as: "anna")
        try await place.importRecords("laptop", count: 2, pictureEvery: 2)
        try await place.sync("laptop")
        await place.stop()
        let cloud = place.scratch["cloud"]
        let database = try MovedDatabase(in: place.scratch)
        let moved = try await database.move(place.tool, cloud.path, database.address)
        #expect(moved.status == 0, "\(moved.errors)")
        try await place.serve(database.options)
        try await place.sync("laptop")
        await place.stop()
        try await checkDirectory(cloud)
        try await checkDatabase(database)
    }

    private func checkDirectory(_ cloud: URL) async throws {
        let container = MovedContainer(
            name: "a", environment: "development", key: Data(), began: 0, commonChanges: 0, schema: nil)
        var moved: Set<String> = []
        func add(_ table: MovedTable, in container: MovedContainer?) {
            let file = URL(fileURLWithPath: SQLiteMoveSide.file(of: table, in: container)).lastPathComponent
            // The row number of a table is not a column.
            for column in table.columns where column.sqlite != "rowid" {
                moved.insert("\(file) \(table.name).\(column.sqlite)")
            }
        }
        for table in Self.ofCloud { add(table, in: nil) }
        for table in MovedTable.ofContainers { add(table, in: container) }
        var found: Set<String> = []
        let paths = try FileManager.default.subpathsOfDirectory(atPath: cloud.path).filter { $0.hasSuffix(".sqlite") }
        for path in paths {
            let file = cloud.appendingPathComponent(path)
            let queue = try DatabaseQueue(path: file.path)
            let columns = try await queue.read { db in
                try String.fetchAll(
                    db,
                    sql: """
                        SELECT t.name || '.' || c.name FROM sqlite_schema t, pragma_table_xinfo(t.name) c
                        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite~_%' ESCAPE '~'
                        """)
            }
            found.formUnion(columns.map { "\(file.lastPathComponent) \($0)" })
            guard file.lastPathComponent == "records.sqlite" else { continue }
            // Of these tables only rows of certain names are moved.
            let documents = try await queue.read { db in try String.fetchAll(db, sql: "SELECT name FROM documents ORDER BY name")
            }
            let counters = try await queue.read { db in try String.fetchAll(db, sql: "SELECT name FROM counters ORDER BY name") }
            #expect(documents == ["began", "key", "schema"], "a document that MovedContainer does not have")
            #expect(counters.filter { $0 != "change" && $0 != "schema" } == [], "a counter that MovedContainer does not have")
        }
        check(found, moved: moved, left: Self.leftInDirectory, in: "a directory")
    }

    private func checkDatabase(_ place: MovedDatabase) async throws {
        let tables = Self.ofCloud + MovedTable.ofContainers
        let moved = Set(tables.flatMap { table in table.columns.map { "\(table.postgres).\($0.name)" } })
        let database = PostgresDatabase(PostgresConfiguration(try PostgresAddress(place.address)))
        let rows = try await database.query(
            "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = current_schema()")
        await database.close()
        var found: Set<String> = []
        for row in rows {
            let (table, column): (String, String) = (try row.value(0), try row.value(1))
            // Each table of containers has the container's number, which the database assigns.
            if column == "container", table.hasPrefix("tidemark_") { continue }
            found.insert("\(table).\(column)")
        }
        check(found, moved: moved, left: Self.leftInDatabase, in: "a database")
    }
}
