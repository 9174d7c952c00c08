import TestServers
import TestSupport
import Testing

@testable import TidemarkPostgres

/// Goal: the owner comes first in every table, so that a database can be spread by owners.
///
/// Method: PostgreSQL's catalogue of a database in which every component has made its tables.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct OwnerFirstTableTests {
    /// The columns that a table begins with: the container and the owner, or the account.
    private static let owners = [["container", "owner"], ["account"]]

    /// Tables that begin with no owner.
    private static let exceptions: Set<String> = [
        // Of the whole database: which steps were taken, and which directory has the assets.
        "tidemark_migrations", "tidemark_asset_place",
        // Of whole containers: few rows, which change with the schema, with a sweep, or as a cloud is put back.
        "tidemark_containers", "tidemark_schemas", "tidemark_incarnations",
        // The account is the owner, and its identifier is the key.
        "accounts",
        // Of whole containers: a name leads to the account, which is not known before.
        "account_containers", "account_names", "account_namings",
        // Of the whole cloud, and in the memory of each server.
        "credential_state", "served_containers", "api_tokens", "server_keys",
        // A request has the identifier of its session and nothing else, and a sign-in that of an identity provider.
        "sessions", "console_sessions", "identities",
        // A log of the whole cloud, in the order of its entries.
        "audit_log",
        // Sync failures: one list of the whole cloud, for operators. The key is a digest of the failure and its account.
        "sync_failures",
        // Looked up before the account of a request is known.
        "signed_requests", "sign_in_rates",
    ]

    /// Indexes of tables of records that begin with no owner.
    private static let indexExceptions: Set<String> = [
        // A client that opens a link knows nothing but the link.
        "tidemark_links_by_digest"
    ]

    private struct Index {
        let name: String
        let isPrimary, isUnique: Bool
        /// Columns, and expressions.
        let columns: [String]
    }

    private struct Table {
        let name: String
        let columns: [String]
        var indexes: [Index]

        /// Says in what way the table doesn't begin with its owner; `nil` for a table that does.
        var fault: String? {
            guard let owner = OwnerFirstTableTests.owners.first(where: { columns.starts(with: $0) }) else {
                return "the table \(name) begins with no owner: \(columns)"
            }
            // Two tables of records have unique indexes in place of a primary key.
            guard indexes.contains(where: { $0.isUnique && $0.columns.starts(with: owner) }) else {
                return "the table \(name) has no key that begins with \(owner)"
            }
            let isOfRecords = owner.count > 1
            for index in indexes where index.isPrimary || isOfRecords {
                guard index.columns.starts(with: owner) || OwnerFirstTableTests.indexExceptions.contains(index.name) else {
                    return "the index \(index.name) of the table \(name) doesn't begin with \(owner): \(index.columns)"
                }
            }
            return nil
        }
    }

    /// Each table of the schema, from the catalogue.
    private func readTables(_ database: PostgresDatabase) async throws -> [Table] {
        let rows = try await database.query(
            """
            SELECT t.relname::text, i.relname::text, x.indisprimary, x.indisunique,
                ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a
                    WHERE a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum),
                ARRAY(SELECT coalesce(a.attname::text, '(an expression)')
                    FROM unnest(x.indkey) WITH ORDINALITY k (number, place)
                        LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.number AND k.number > 0
                    ORDER BY k.place)
            FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace AND n.nspname = current_schema()
                LEFT JOIN pg_catalog.pg_index x ON x.indrelid = t.oid LEFT JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid
            WHERE t.relkind IN ('r', 'p') ORDER BY t.relname, i.relname
            """)
        var tables: [Table] = []
        for row in rows {
            let name: String = try row.value(0)
            if tables.last?.name != name { tables.append(Table(name: name, columns: try row.value(4), indexes: [])) }
            guard let index = try row.value(1, as: String?.self) else { continue }
            tables[tables.count - 1].indexes.append(
                Index(name: index, isPrimary: try row.value(2), isUnique: try row.value(3), columns: try row.value(5)))
        }
        return tables
    }

    /// A database with the tables of all components.
    private func database() async throws -> Fixture {
        let fixture = try await Fixture()
        for component in PostgresVersions.known { try await component.run(on: fixture.database) }
        return fixture
    }

    @Test func `each table's key begins with the owner, and so does each index of a table of records`() async throws {
        let fixture = try await database()
        let tables = try await readTables(fixture.database)
        // The tables of records, accounts, credentials, subscriptions and notifications.
        #expect(tables.count > 45, "\(tables.map(\.name))")
        for table in tables {
            let isExpected = Self.exceptions.contains(table.name)
            if let fault = table.fault {
                if !isExpected { Issue.record("\(fault); mend it, or make it an exception with a reason") }
            } else if isExpected {
                Issue.record("the table \(table.name) begins with its owner, and is no exception any more")
            }
        }
        let indexes = Set(tables.flatMap { $0.indexes.map(\.name) })
        #expect(Self.exceptions.subtracting(tables.map(\.name)).isEmpty && Self.indexExceptions.subtracting(indexes).isEmpty)
        await fixture.database.close()
    }

    @Test func `a table, a key and an index without the owner are found by name`() async throws {
        let fixture = try await Fixture()
        try await fixture.sql(
            """
            CREATE TABLE no_owner (container int8, name bytea, PRIMARY KEY (container, name));
            CREATE TABLE no_key (container int8, owner bytea, name bytea);
            CREATE INDEX no_key_by_owner ON no_key (container, owner);
            CREATE TABLE another_key (account text, id bytea PRIMARY KEY, UNIQUE (account, id));
            CREATE TABLE another_index (container int8, owner bytea, name bytea, PRIMARY KEY (container, owner, name));
            CREATE INDEX another_index_by_name ON another_index (container, lower(encode(owner, 'hex')), name);
            CREATE TABLE of_records (container int8, owner bytea, name bytea, PRIMARY KEY (container, owner, name));
            CREATE INDEX of_records_by_value ON of_records (container, owner, substring(name, 1, 9)) WHERE name > '';
            CREATE TABLE of_accounts (account text, id bytea, PRIMARY KEY (account, id));
            CREATE INDEX of_accounts_by_id ON of_accounts (id);
            """)
        let faults = try await readTables(fixture.database).compactMap(\.fault)
        #expect(faults.count == 4, "\(faults)")
        for name in ["the table no_owner ", "the table no_key ", "another_key_pkey", "another_index_by_name"] {
            #expect(faults.contains { $0.contains(name) }, "\(name): \(faults)")
        }
        await fixture.database.close()
    }
}
