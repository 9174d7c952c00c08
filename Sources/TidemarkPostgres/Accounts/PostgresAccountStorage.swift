import Foundation
package import TidemarkCloud
package import TidemarkCloudEngine
import TidemarkModel

/// Stores the accounts of a cloud in PostgreSQL.
///
/// Accounts are not cached: every request reads them, and simultaneous requests share one statement (``PostgresLookUp``). So no
/// server accepts a closed account from the commit on.
package final class PostgresAccountStorage: AccountStorage {
    let database: PostgresDatabase
    private let byID: PostgresLookUp<Group, String, [String: StoredAccount]>
    /// Containers whose user record names are in the tables.
    private let named = LockedValue<Set<String>>([])

    /// How long a request writes missing user record names. Then its client gets 503.
    let namingPatience: Duration

    /// Brings the tables to their newest version, and opens them.
    ///
    /// - Throws: `CloudError`, made by `CloudError.init(postgres:)`.
    package static func open(
        _ database: PostgresDatabase, namingPatience: Duration = .seconds(5)
    ) async throws(CloudError) -> PostgresAccountStorage {
        do {
            try await migrations.run(on: database)
        } catch {
            throw CloudError(postgres: error)
        }
        return PostgresAccountStorage(database, namingPatience)
    }

    /// All accounts are one group of look-ups.
    private enum Group { case all }

    private init(_ database: PostgresDatabase, _ namingPatience: Duration) {
        (self.database, self.namingPatience) = (database, namingPatience)
        byID = PostgresLookUp(database) { _, ids in
            PostgresCommand("SELECT \(Self.columns) FROM accounts WHERE id = ANY($1)", [ids])
        } found: { rows throws(PostgresError) in
            var found: [String: StoredAccount] = [:]
            for row in rows {
                let account = try Self.account(row)
                found[account.id] = account
            }
            return found
        }
    }

    // Writing

    package func add(_ account: StoredAccount) async throws(CloudError) -> StoredAccount {
        try await database.write { transaction in
            // No container is registered meanwhile: see ``name(_:)``.
            try transaction.enqueue("SELECT pg_advisory_xact_lock_shared($1)", Self.namingLock)
            let made = try transaction.query(
                """
                INSERT INTO accounts (id, email, phone, name, quota, status, discoverable) VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT DO NOTHING
                """, account.id, account.email, account.phone, try Self.text(account.name), account.quota,
                account.status.rawValue, account.isDiscoverable)
            guard made.affected == 0 else {
                try transaction.enqueue(
                    """
                    INSERT INTO account_names (container, name, account)
                    SELECT c.name, \(Self.userRecordName), a.id FROM account_containers AS c, accounts AS a WHERE a.id = $1
                    """, account.id)
                return account
            }
            let known = try transaction.query("SELECT \(Self.columns) FROM accounts WHERE email = $1", account.email)
            if let row = known.first { return try Self.account(row) }
            guard let phone = account.phone else {
                throw CloudError(.zoneBusy, forClients: "the account was just removed", retryAfter: .seconds(1))
            }
            throw CloudError.takenNumber(phone)
        }
    }

    package func update(_ account: StoredAccount, from before: StoredAccount?) async throws(CloudError) -> Bool {
        guard account.id.isStorable else { return false }
        return try await database.write { transaction in
            let known = try transaction.query("SELECT \(Self.columns) FROM accounts WHERE id = $1 FOR UPDATE", account.id).first
            guard let known = try known.map({ try Self.account($0) }), before.map(known.isLike) ?? true else {
                return false
            }
            do throws(PostgresError) {
                try transaction.query(
                    "UPDATE accounts SET phone = $2, name = $3, quota = $4, status = $5, discoverable = $6 WHERE id = $1",
                    account.id, account.phone, try Self.text(account.name), account.quota, account.status.rawValue,
                    account.isDiscoverable)
            } catch {
                guard error.code == .constraint, let phone = account.phone else { throw error }
                throw CloudError.takenNumber(phone)
            }
            return true
        }
    }

    package func setAddress(_ email: String, of id: String) async throws(CloudError) -> Bool {
        guard id.isStorable, email.isStorable else { return false }
        do throws(CloudError) {
            try await database.write { transaction in
                do throws(PostgresError) {
                    try transaction.query("UPDATE accounts SET email = $2 WHERE id = $1", id, email)
                } catch {
                    // A transaction in which a statement has failed commits nothing: it has to end by an error.
                    guard error.code == .constraint else { throw error }
                    throw CloudError(.invalidArguments, "another account has this address")
                }
            }
            return true
        } catch {
            guard error.code == .invalidArguments else { throw error }
            return false
        }
    }

    package func remove(_ id: String) async throws(CloudError) {
        guard id.isStorable else { return }
        try await database.write { transaction in try transaction.enqueue("DELETE FROM accounts WHERE id = $1", id) }
    }

    // Reading

    package func account(id: String) async throws(CloudError) -> StoredAccount? {
        guard id.isStorable else { return nil }
        do throws(PostgresError) {
            return try await byID.found(for: [id], in: .all)[id]
        } catch {
            throw CloudError(postgres: error)
        }
    }

    package func account(email: String) async throws(CloudError) -> StoredAccount? {
        guard email.isStorable else { return nil }
        return try Self.first(await database.rows("SELECT \(Self.columns) FROM accounts WHERE email = $1", email))
    }

    package func account(phone: String) async throws(CloudError) -> StoredAccount? {
        guard phone.isStorable else { return nil }
        return try Self.first(await database.rows("SELECT \(Self.columns) FROM accounts WHERE phone = $1", phone))
    }

    package func account(userRecordName name: String, in container: String) async throws(CloudError) -> StoredAccount? {
        guard name.isStorable, container.isStorable else { return nil }
        if !named.withLock({ $0.contains(container) }) {
            try await self.name(container)
            named.withLock { _ = $0.insert(container) }
        }
        return try Self.first(
            await database.rows(
                """
                SELECT \(Self.columns) FROM accounts
                WHERE id = (SELECT account FROM account_names WHERE container = $1 AND name = $2)
                """, container, name))
    }

    package func accounts() async throws(CloudError) -> [StoredAccount] {
        let rows = try await database.rows("SELECT \(Self.columns) FROM accounts ORDER BY email")
        return try CloudError.ofPostgres { try rows.map { try Self.account($0) } }
    }

    package func isEmpty() async throws(CloudError) -> Bool {
        try await database.rows("SELECT FROM accounts LIMIT 1").isEmpty
    }

    // Rows

    private static let columns = "id, email, phone, name, quota, status, discoverable"
    /// `StoredAccount.userRecordName(of:in:)` of the account `a` in the container `c`.
    static let userRecordName =
        "'_' || substr(encode(sha256(convert_to(a.id || ' ' || c.name, 'UTF8')), 'hex'), 1, 32)"
    private static func first(_ rows: PostgresRows) throws(CloudError) -> StoredAccount? {
        guard let row = rows.first else { return nil }
        return try CloudError.ofPostgres { try account(row) }
    }

    /// - Parameter place: The index of the column `id`.
    private static func account(_ row: PostgresRow, from place: Int = 0) throws(PostgresError) -> StoredAccount {
        // A name that can't be read counts as missing: the account is of use without it.
        let name: String? = try row.value(place + 3)
        return StoredAccount(
            id: try row.value(place), email: try row.value(place + 1), phone: try row.value(place + 2),
            name: name.flatMap { try? JSONDecoder().decode(PersonName.self, from: Data($0.utf8)) },
            quota: try row.value(place + 4), status: .init(rawValue: try row.value(place + 5)) ?? .couldNotDetermine,
            isDiscoverable: try row.value(place + 6))
    }

    /// Reads an account from the columns of a join; `nil` where there was none.
    static func account(ifAnyIn row: PostgresRow, from place: Int) throws(PostgresError) -> StoredAccount? {
        guard try row.value(place, as: String?.self) != nil else { return nil }
        return try account(row, from: place)
    }

    /// A name as JSON, in which U+0000 is escaped.
    private static func text(_ name: PersonName?) throws(PostgresError) -> String? {
        guard let name else { return nil }
        do {
            return String(decoding: try JSONEncoder().encode(name), as: UTF8.self)
        } catch {
            throw PostgresError(.statement, "the name of a person can't be encoded: \(error)")
        }
    }
}

extension PostgresAccountStorage {
    /// The tables of accounts.
    static let migrations = PostgresMigrations(
        [
            PostgresMigration(
                1, "accounts", oldestUser: 1,
                [
                    // The collation "C" compares and orders by bytes, as everywhere else.
                    """
                    CREATE TABLE accounts (
                        id text COLLATE "C" PRIMARY KEY, email text COLLATE "C" NOT NULL CONSTRAINT accounts_email UNIQUE,
                        phone text COLLATE "C" CONSTRAINT accounts_phone UNIQUE, name text, quota int8 NOT NULL,
                        status text NOT NULL, discoverable bool NOT NULL)
                    """,
                    "CREATE TABLE account_containers (name text COLLATE \"C\" PRIMARY KEY)",
                    """
                    CREATE TABLE account_names (
                        container text COLLATE "C", name text COLLATE "C",
                        account text COLLATE "C" NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
                        PRIMARY KEY (container, name))
                    """,
                    "CREATE INDEX account_names_by_account ON account_names (account)",
                ]),
            PostgresMigration(
                // Older servers believe that a container that has a row has all its names.
                2, "names of accounts in steps", oldestUser: 2,
                [
                    // The containers whose names are being written. `named_to` is the last account that has its name.
                    """
                    CREATE TABLE account_namings (
                        container text COLLATE "C" PRIMARY KEY REFERENCES account_containers (name),
                        named_to text COLLATE "C" NOT NULL)
                    """
                ]),
        ], of: "accounts")
}
