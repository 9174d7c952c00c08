import TestServers
import TestSupport
import Testing
import TidemarkPostgres

/// Goal: a request reads and writes the rows of an account, a session or a device that it names, and looks through no others.
///
/// Method: the texts of all statements that the checks of the contracts come to.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct KeyedStatementTests {
    /// The keys of each table: a statement has to name the columns of one of them. An INSERT has to begin with the columns of the
    /// first.
    private static let keys: [String: [[String]]] = [
        "accounts": [["id"], ["email"], ["phone"]],
        "account_containers": [["name"]],
        "account_names": [["container", "name"]],
        "account_namings": [["container"]],
        "passwords": [["account"]],
        "known_addresses": [["account"]],
        "operators": [["account"]],
        "second_factors": [["account"]],
        "identities": [["issuer", "subject"], ["account"]],
        "sessions": [["id"], ["account"]],
        "console_sessions": [["id"], ["account"]],
        "signed_requests": [["second", "key", "mark"]],
        "sign_in_rates": [["name"]],
        // The subscriptions to a zone are looked up by the zone and its owner.
        "subscriptions": [["account"], ["container", "environment", "zone_owner", "zone"]],
        "devices": [["account"]],
        "notifications": [["account"]],
        "notification_waits": [["account"]],
    ]

    /// Tables that have few rows of the whole cloud, or are read by operators.
    private static let common: Set<String> = [
        // Each server caches these, and reads them again after a change.
        "credential_state", "served_containers", "api_tokens", "server_keys",
        // Lists of the whole cloud for operators, in order of time. An insert removes entries that are too old.
        "audit_log", "sync_failures",
    ]

    /// Statements that look at the rows of many accounts, with single spaces.
    private static let exceptions: Set<String> = [
        // An operator ends all sessions, or replaces the secret.
        "DELETE FROM sessions", "DELETE FROM console_sessions",
        // Lists for operators.
        "SELECT id, email, phone, name, quota, status, discoverable FROM accounts ORDER BY email",
        "SELECT account FROM passwords WHERE digest <> ''",
        "SELECT account, role, containers, added FROM operators ORDER BY account",
        // A server that starts asks whether there is any account.
        "SELECT FROM accounts LIMIT 1",
        // A sweep removes what removed accounts have left.
        "SELECT account FROM subscriptions UNION SELECT account FROM devices UNION SELECT account FROM notifications UNION "
            + "SELECT account FROM notification_waits",
    ]
    /// The beginnings of such statements.
    private static let beginnings: [String] = [
        // Expired rows are removed, a hundred at a time at the most, by an index of times.
        "DELETE FROM signed_requests WHERE (second, key, mark) IN ( SELECT second, key, mark FROM signed_requests",
        "DELETE FROM sessions WHERE id IN ( SELECT id FROM sessions WHERE kept <",
        "DELETE FROM console_sessions WHERE id IN ( SELECT id FROM console_sessions WHERE expires <=",
        "DELETE FROM sign_in_rates WHERE name IN ( SELECT name FROM sign_in_rates WHERE full_at <",
        "DELETE FROM notifications WHERE (account, token, number) IN ( SELECT account, token, number FROM notifications",
        // Lists for operators.
        "SELECT id, account, container, environment, kind, began, kept, device, used, address, system FROM sessions WHERE kept",
        "SELECT id, account, began, expires, used, confirmed, device, address, kind FROM console_sessions "
            + "WHERE expires > $1 ORDER BY began, id",
        // A new account gets its names in all containers. The first request for a name in a container writes the names of all
        // accounts, in steps.
        "INSERT INTO account_names (container, name, account) SELECT c.name,",
        "WITH made AS (INSERT INTO account_containers (name) VALUES",
        "WITH a AS MATERIALIZED (SELECT id FROM accounts WHERE id >",
    ]

    /// Says what a statement lacks; `nil` for one that names the rows of each table by a key. It has single spaces.
    private static func fault(of sql: String) -> String? {
        // The columns that SET names find no row.
        let conditions = sql.hasPrefix("UPDATE ") ? sql.split(separator: " WHERE ", maxSplits: 1).dropFirst().joined() : sql
        let reference = /(?:\b(FROM|JOIN|UPDATE|INTO)|,) ([a-z_]+)\b(?: (?:AS )?([a-z]{1,2})\b)?/
        for match in sql.matches(of: reference) {
            let table = String(match.2)
            guard let wanted = keys[table] else { continue }
            if match.1 == "INTO" {
                guard matches(sql, "INTO \(table)(?: AS \\w+)? \\(\(wanted[0].joined(separator: ", "))\\b") else {
                    return "the columns of \(table) don't begin with \(wanted[0])"
                }
                continue
            }
            let prefix = match.3.map { "\\b\($0)\\." } ?? "(?:^|[^.\\w])"
            let isKeyed = wanted.contains { key in
                key.allSatisfy { matches(conditions, "(?:\(prefix)\($0) = |USING \\([^)]*\\b\($0)\\b)") }
            }
            guard isKeyed else { return "the rows of \(table) are named by none of \(wanted)" }
        }
        return nil
    }

    private static func matches(_ text: String, _ expression: String) -> Bool {
        guard let expression = try? Regex(expression) else {
            Issue.record("\(expression) is no expression")
            return false
        }
        return text.contains(expression)
    }

    private static func isException(_ sql: String) -> Bool {
        exceptions.contains(sql) || beginnings.contains { sql.hasPrefix($0) }
    }

    /// Runs checks of a storage, each over a database of its own.
    private static func run<Subject: Sendable>(
        _ checks: [StorageCheck<Subject>], _ subject: @Sendable (Fixture) async throws -> Subject
    ) async throws {
        for check in checks {
            let fixture = try await Fixture()
            try await check.run(try await subject(fixture))
            await fixture.database.close()
        }
    }

    /// Collects the statements of all storages.
    private static func statements() async throws -> Set<String> {
        let seen = Shared<Set<String>>([])
        let observe: @Sendable (inout PostgresConfiguration) -> Void = { configuration in
            configuration.observesStatement = { sql in
                let text = sql.split(whereSeparator: \.isWhitespace).joined(separator: " ")
                seen.change { _ = $0.insert(text) }
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                try await run(AccountStorageContract.checks) { fixture in
                    return { try await PostgresAccountStorage.open(try fixture.other(observe)) }
                }
            }
            group.addTask {
                try await run(CredentialStorageContract.checks) { fixture in
                    return { try await PostgresCredentialStorage.open(try fixture.other(observe)) }
                }
            }
            group.addTask {
                try await run(SubscriptionStorageContract.checks) { fixture in
                    return { try await PostgresSubscriptionStorage.open(try fixture.other(observe)) }
                }
                try await run(SignInRateStorageContract.checks) { fixture in
                    _ = try await PostgresCredentialStorage.open(fixture.database)
                    return SignInRateStorageContract.Subject(fixture, observe)
                }
            }
            group.addTask {
                let listeners = Shared<[PostgresListener]>([])
                try await run(NotificationStorageContract.checks) { fixture in
                    _ = try await PostgresSubscriptionStorage.open(fixture.database)
                    let address = try PostgresAddress(fixture.server.address(fixture.name))
                    let listener = try PostgresListener(PostgresConfiguration(address))
                    listeners.change { $0.append(listener) }
                    return NotificationStorageContract.Subject { limits in
                        PostgresNotificationStorage(try fixture.other(observe), listener: listener, limits: limits)
                    }
                }
                for listener in listeners.value { await listener.close() }
            }
            try await group.waitForAll()
        }
        return seen.value
    }

    @Test func `statements of accounts, sessions, subscriptions and notifications name their rows by a key`() async throws {
        let statements = try await Self.statements().filter { !$0.hasPrefix("CREATE ") && !$0.hasPrefix("ALTER ") }
        #expect(statements.count > 60, "\(statements.count)")
        for sql in statements.sorted() where !Self.isException(sql) {
            if let fault = Self.fault(of: sql) { Issue.record("\(fault): \(sql)") }
        }
    }

    @Test func `the keys and the exceptions name all tables but those of records`() async throws {
        let fixture = try await Fixture()
        _ = try await PostgresCredentialStorage.open(fixture.database)
        _ = try await PostgresSubscriptionStorage.open(fixture.database)
        let rows = try await fixture.database.query(
            """
            SELECT tablename::text FROM pg_catalog.pg_tables
            WHERE schemaname = current_schema() AND NOT starts_with(tablename::text, 'tidemark_')
            """)
        let tables = Set(try rows.map { try $0.value(0, as: String.self) })
        #expect(tables == Self.common.union(Self.keys.keys))
        await fixture.database.close()
    }

    @Test func `a statement that names no key is found`() {
        for sql in [
            "SELECT id FROM accounts WHERE quota = $1", "UPDATE sessions SET id = $1 WHERE used < $2",
            "SELECT s.id FROM sessions AS s, accounts AS a WHERE s.id = $1 AND s.account = a.email",
            "DELETE FROM notifications WHERE token = $1", "INSERT INTO devices (token, account) VALUES ($1, $2)",
            "SELECT FROM subscriptions WHERE container = $1 AND environment = $2 AND zone = ANY($3)", "DELETE FROM passwords",
        ] { #expect(Self.fault(of: sql) != nil && !Self.isException(sql), "\(sql)") }
        for sql in [
            "SELECT id FROM accounts WHERE email = $1", "UPDATE sessions SET used = $2 WHERE id = $1 AND used < $2",
            "SELECT s.id FROM sessions AS s LEFT JOIN accounts AS a ON a.id = s.account WHERE s.id = ANY($1)",
            "SELECT FROM unnest($1, $2) AS box (account, token) JOIN notification_waits AS w USING (account, token)",
            "INSERT INTO sign_in_rates AS rate (name, at) VALUES ($1, $2)",
        ] { #expect(Self.fault(of: sql) == nil, "\(sql)") }
    }
}
