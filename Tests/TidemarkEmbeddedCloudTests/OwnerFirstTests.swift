import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkTesting

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a request reads and writes only rows of the owners that it names, and no two owners have rows in common. Method: all
/// statements that the checks of the contract execute, by their texts and by SQLite's plans; two owners beside each other.
@Suite(.timeLimit(.minutes(30))) struct OwnerFirstTests {
    // Statements

    /// Statements that read rows of all owners, and are not part of a request; or, the last, of a request that can't know the
    /// owner.
    private static let exceptions = [
        // The task that continues removals.
        "FROM removals r JOIN owners o",
        // Sweeps.
        "FROM reservations r JOIN owners o", "FROM owners o WHERE EXISTS (SELECT 1 FROM answers a",
        // An administrator changes the indexes of a field, or removes a field.
        "SELECT id, fields, zone, owner, name FROM records WHERE type = ?", "SELECT fields FROM records WHERE type = ?",
        // A new incarnation.
        "SELECT max(change) FROM owners",
        // Verification.
        "SELECT * FROM records NOT INDEXED",
        // A client that opens a link knows only the link.
        "SELECT o.name FROM links l JOIN owners o ON o.number = l.owner WHERE l.digest = ?",
    ]

    /// Says what a statement lacks; `nil` if it constrains the owner of each table that has owners.
    private static func fault(of sql: String, tables: Set<String>) -> String? {
        // The name of a table, and its alias in the statement.
        let reference =
            /\b(FROM|JOIN|UPDATE|INTO)\s+(\w+)(?:\s+(?!WHERE|ON|SET|ORDER|VALUES|INDEXED|NOT|JOIN|CROSS|LEFT|LIMIT|SELECT)(\w+))?/
        for match in sql.matches(of: reference) where tables.contains(String(match.2)) {
            let (table, alias) = (String(match.2), match.3.map(String.init))
            if match.1 == "INTO" {
                let columns = sql.contains("INTO \(table) (owner,") || table == "owners"
                if !columns { return "the columns of \(table) don't begin with the owner" }
                continue
            }
            let key = table == "owners" ? "(?:number|name|owner)" : "owner"
            let name = alias.map { "\\b\($0)\\." } ?? "(?:^|[^.\\w])"
            guard let isConstrained = try? Regex("\(name)\(key) = |= \(name)\(key)\\b"), sql.contains(isConstrained) else {
                return "\(table) is not limited to an owner"
            }
        }
        // If tables are joined by their owners, a constraint on one of them suffices.
        let isOfOwners = sql.contains(/INTO |[^_\w](owner|number|name) = [?:\d-]/)
        let hasOwner = tables.contains { sql.contains(" \($0) ") || sql.hasSuffix(" \($0)") }
        return hasOwner && !isOfOwners ? "no owner is given" : nil
    }

    @Test func `every statement of a request names the owner, and uses it to find its rows`() async throws {
        let seen = LockedValue<Set<String>>([])
        for check in CloudContract.checks {
            try await check.run(try EmbeddedCloudSubject { sql in _ = seen.withLock { $0.insert(sql) } })
        }
        let scratch = try Scratch()
        _ = try SQLiteCloudStorage(at: scratch["records.sqlite"])
        var configuration = Configuration()
        configuration.prepareDatabase { db in db.add(function: SQLiteCloudTransaction.distance) }
        let queue = try DatabaseQueue(path: scratch["records.sqlite"].path, configuration: configuration)
        let tables = try await queue.read { db in
            var tables: Set<String> = ["owners"]
            for table in try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table'")
            where try db.columns(in: table).first?.name == "owner" { tables.insert(table) }
            return tables
        }
        // Only these tables belong to the whole container.
        let all = try await queue.read { db in
            Set(try String.fetchAll(db, sql: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"))
        }
        #expect(all.subtracting(tables) == ["counters", "documents", "incarnations"])

        let statements = seen.withLock { $0 }.sorted()
        #expect(statements.count > 90, "\(statements.count)")
        for sql in statements where !Self.exceptions.contains(where: { sql.contains($0) }) {
            if let fault = Self.fault(of: sql, tables: tables) { Issue.record("\(fault): \(sql)") }
            let plan = try await queue.read { db in
                // The text of a query contains the numbers of its zone.
                let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
                statement.setUncheckedArguments(StatementArguments())
                return try Row.fetchAll(statement).map { $0["detail"] as String }
            }
            for step in plan where step.hasPrefix("SCAN ") && !step.contains("json_each") && !step.contains("CONSTANT") {
                // Results of subqueries, and tables of the container that have few rows.
                let name = String(step.split(separator: " ")[1])
                let isSmall = name.hasPrefix("(") || ["incarnations", "counters"].contains(name)
                #expect(isSmall, "all of \(name) is read: \(sql): \(plan)")
            }
        }
        try queue.close()
        // Each table was used by a statement.
        for table in tables { #expect(statements.contains { $0.contains(" \(table) ") }, "no statement is about \(table)") }
    }

    @Test func `a statement without the owner is detected`() {
        let tables: Set<String> = ["records", "named", "owners", "links"]
        for sql in [
            "SELECT * FROM records WHERE zone = ? AND name = ?", "DELETE FROM records WHERE id = ?",
            "SELECT n.digest FROM records r JOIN named n ON n.record = r.id WHERE r.owner = ? AND r.name = ?",
            "INSERT INTO records (zone, owner) VALUES (?, ?)", "UPDATE records SET owner_name = 'x' WHERE id = ?",
            "SELECT EXISTS (SELECT 1 FROM named WHERE digest = ?)",
            "SELECT n.digest FROM records r JOIN named n ON n.owner = r.owner WHERE r.changed = ?", "SELECT change FROM owners",
        ] { #expect(Self.fault(of: sql, tables: tables) != nil, "\(sql)") }
        for sql in [
            "SELECT * FROM records WHERE owner = ? AND zone = ?", "INSERT OR IGNORE INTO named (owner, zone) VALUES (?, ?)",
            "SELECT n.digest FROM records r JOIN named n ON n.owner = r.owner AND n.record = r.id WHERE r.owner = ?",
            "SELECT change FROM owners WHERE number = ?",
        ] { #expect(Self.fault(of: sql, tables: tables) == nil, "\(sql)") }
    }

    // Writes

    @Test func `a transaction that writes rows of an undeclared owner is refused, and nothing is written`() async throws {
        let scratch = try Scratch()
        let storage = try SQLiteCloudStorage(at: scratch["records.sqlite"])
        func write(_ declared: WrittenOwners) async throws {
            try await storage.write(owners: declared) { rows throws(CloudError) in
                try rows.addUsed(5, by: "anna")
                try rows.addUsed(7, by: "ben")
            }
        }
        await #expect(throws: CloudError(.internalError, "")) { try await write(["anna"]) }
        await #expect(throws: CloudError(.internalError, "")) { try await write([]) }
        #expect(try await storage.read { rows throws(CloudError) in try rows.used(by: "anna") } == 0)
        // An owner that was added by a rolled back transaction gets its number again.
        try await write(["ben", "anna"])
        try await write(.all)
        #expect(
            try await storage.read { rows throws(CloudError) in [try rows.used(by: "anna"), try rows.used(by: "ben")] } == [
                10, 14,
            ])
        #expect(WrittenOwners(["b", "a", "b"]).names == ["a", "b"])
    }
}
