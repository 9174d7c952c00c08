import TestServers
import TestSupport
import Testing
import TidemarkModel
import TidemarkPostgres
import TidemarkTesting

/// Goal: a request reads and writes only rows of the container and the owners that it names. Method: the texts of all statements
/// that the checks of the contract send.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresOwnerFirstTests {
    /// Statements that look at all owners. Only the last is part of a request, which can't know the owner.
    private static let exceptions = [
        // The task that goes on with removals.
        "SELECT owner FROM tidemark_removals WHERE container = $1 ORDER BY id LIMIT 1",
        // An administrator changes the indexes of a field.
        "SELECT r.owner, r.zone, r.name, r.fields FROM tidemark_records r",
        // A client that opens a link knows nothing but the link.
        "SELECT owner FROM tidemark_links WHERE container = $1 AND digest = $2",
    ]
    /// Tables of whole containers.
    private static let common = ["tidemark_containers", "tidemark_schemas", "tidemark_incarnations", "tidemark_migrations"]

    /// Says what a statement lacks; `nil` for one that limits each table to a container and an owner.
    private static func fault(of sql: String) -> String? {
        let reference = /\b(FROM|JOIN|UPDATE|INTO)\s+(tidemark_\w+)(?:\s+(?:AS\s+)?([a-z]{1,2})\b)?/
        for match in sql.matches(of: reference) where !common.contains(String(match.2)) {
            let (table, alias) = (String(match.2), match.3.map(String.init))
            if match.1 == "INTO" {
                guard sql.contains("(container, owner, ") else { return "the columns of \(table) don't begin with the owner" }
                continue
            }
            let prefix = alias.map { "\\b\($0)\\." } ?? "(?:^|[^.\\w])"
            for column in ["container", "owner"] {
                guard let test = try? Regex("\(prefix)\(column) = "), sql.contains(test) else {
                    return "\(table) is not limited by \(column)"
                }
            }
        }
        return nil
    }

    @Test func `every statement of a request names the container and the owner`() async throws {
        let seen = LockedValue<Set<String>>([])
        let records = try await RecordsFixture { $0.observesStatement = { sql in _ = seen.withLock { $0.insert(sql) } } }
        for (number, check) in CloudContract.checks.enumerated() {
            try await check.run(try await EmbeddedCloudSubject(postgres: records, name: "test\(number)"))
        }
        // Statements of migrations concern whole tables.
        let migrating = ["CREATE ", "SELECT setval(", "-i.number"]
        let statements = seen.withLock { $0 }.filter { sql in
            sql.contains("tidemark_") && !migrating.contains { sql.contains($0) }
        }
        #expect(statements.count > 90, "\(statements.count)")
        for sql in statements.sorted() where !Self.exceptions.contains(where: { sql.contains($0) }) {
            if let fault = Self.fault(of: sql) { Issue.record("\(fault): \(sql)") }
        }
    }

    @Test func `a statement without the container or the owner is found`() {
        for sql in [
            "SELECT * FROM tidemark_records WHERE container = $1 AND name = $2", "DELETE FROM tidemark_zones WHERE owner = $1",
            "SELECT n.digest FROM tidemark_records r JOIN tidemark_named n ON n.name = r.name WHERE r.container = $1 AND r.owner = $2",
            "INSERT INTO tidemark_records (zone, owner) VALUES ($1, $2)",
            "UPDATE tidemark_shares SET zone_owner = $1 WHERE container = $2",
        ] { #expect(Self.fault(of: sql) != nil, "\(sql)") }
        for sql in [
            "SELECT * FROM tidemark_records WHERE container = $1 AND owner = $2",
            "INSERT INTO tidemark_records AS t (container, owner, zone) VALUES ($1, $2, $3)",
            "SELECT max(began) FROM tidemark_incarnations WHERE container = $1",
        ] { #expect(Self.fault(of: sql) == nil, "\(sql)") }
    }
}
