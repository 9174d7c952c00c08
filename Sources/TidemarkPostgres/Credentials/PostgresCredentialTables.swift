import Foundation
import TidemarkCloudEngine
import TidemarkModel

/// The tables of credentials.
///
/// Texts that people type, such as names, are `bytea`, since a `text` can't contain U+0000.
enum PostgresCredentialTables {
    static let migrations = PostgresMigrations(
        [
            PostgresMigration(
                1, "credentials", oldestUser: 1,
                [
                    // One row. Each change of the secret, containers, tokens or keys gives it another revision.
                    """
                    CREATE TABLE credential_state (
                        is_only bool PRIMARY KEY CHECK (is_only), revision int8 NOT NULL, secret bytea NOT NULL, previous bytea,
                        previous_until int8)
                    """,
                    "CREATE TABLE served_containers (name text COLLATE \"C\" PRIMARY KEY, added int8 NOT NULL)",
                    """
                    CREATE TABLE api_tokens (
                        id text COLLATE "C" PRIMARY KEY, digest bytea NOT NULL UNIQUE, container text NOT NULL,
                        environment text NOT NULL, name bytea NOT NULL, redirect text, popup text, origins text[] NOT NULL,
                        made int8 NOT NULL)
                    """,
                    """
                    CREATE TABLE server_keys (
                        id text COLLATE "C" PRIMARY KEY, container text NOT NULL, environment text NOT NULL, name bytea NOT NULL,
                        account text COLLATE "C" NOT NULL, public_key bytea NOT NULL, made int8 NOT NULL)
                    """,
                    """
                    CREATE TABLE passwords (
                        account text COLLATE "C" PRIMARY KEY, log_n int8 NOT NULL, r int8 NOT NULL, p int8 NOT NULL,
                        salt bytea NOT NULL, digest bytea NOT NULL, changed int8 NOT NULL)
                    """,
                    """
                    CREATE TABLE sessions (
                        id bytea PRIMARY KEY, account text COLLATE "C" NOT NULL, container text NOT NULL,
                        environment text NOT NULL, kind text NOT NULL, began int8 NOT NULL, kept int8 NOT NULL,
                        device text NOT NULL, used int8 NOT NULL, address text NOT NULL)
                    """,
                    "CREATE INDEX sessions_by_account ON sessions (account)",
                    "CREATE INDEX sessions_by_kept ON sessions (kept)",
                    """
                    CREATE TABLE known_addresses (
                        account text COLLATE "C", address text COLLATE "C", used int8 NOT NULL, PRIMARY KEY (account, address))
                    """,
                    """
                    CREATE TABLE audit_log (
                        number int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, at int8 NOT NULL, action text NOT NULL,
                        actor text NOT NULL, account text NOT NULL, address text NOT NULL, container text NOT NULL,
                        subject text NOT NULL, outcome text NOT NULL)
                    """,
                    "CREATE INDEX audit_log_by_at ON audit_log (at)",
                    """
                    CREATE FUNCTION tidemark_keep_audit_log() RETURNS trigger LANGUAGE plpgsql AS $$
                    BEGIN
                        IF TG_OP = 'DELETE' AND OLD.at < (SELECT max(at) FROM audit_log) - 86400000000 THEN RETURN OLD; END IF;
                        RAISE EXCEPTION 'the audit log is append-only';
                    END $$
                    """,
                    """
                    CREATE TRIGGER audit_log_is_kept BEFORE UPDATE OR DELETE ON audit_log
                        FOR EACH ROW EXECUTE FUNCTION tidemark_keep_audit_log()
                    """,
                    // Marks by which repeated requests are recognised, for as long as the date of a request is accepted.
                    """
                    CREATE TABLE signed_requests (
                        second int8, key text COLLATE "C", mark bytea, PRIMARY KEY (second, key, mark))
                    """,
                    // The name is a digest of what is counted. After `full_at` a row says no more than a missing row.
                    """
                    CREATE TABLE sign_in_rates (
                        name bytea PRIMARY KEY, remaining float8 NOT NULL, was_admitted bool NOT NULL, at float8 NOT NULL,
                        full_at float8 NOT NULL)
                    """,
                    "CREATE INDEX sign_in_rates_by_full_at ON sign_in_rates (full_at)",
                ]),
            PostgresMigration(
                2, "operators", oldestUser: 1,
                [
                    "ALTER TABLE audit_log ADD COLUMN before_change text NOT NULL DEFAULT ''",
                    "ALTER TABLE audit_log ADD COLUMN after_change text NOT NULL DEFAULT ''",
                    """
                    CREATE TABLE operators (
                        account text COLLATE "C" PRIMARY KEY, role text NOT NULL, containers text[] NOT NULL, added int8 NOT NULL)
                    """,
                    """
                    CREATE TABLE console_sessions (
                        id bytea PRIMARY KEY, account text COLLATE "C" NOT NULL, began int8 NOT NULL, expires int8 NOT NULL,
                        used int8 NOT NULL, confirmed int8 NOT NULL, device text NOT NULL, address text NOT NULL)
                    """,
                    "CREATE INDEX console_sessions_by_account ON console_sessions (account)",
                    "CREATE INDEX console_sessions_by_expires ON console_sessions (expires)",
                    """
                    CREATE TABLE second_factors (
                        account text COLLATE "C" PRIMARY KEY, secret bytea NOT NULL, recovery bytea NOT NULL, step int8 NOT NULL,
                        added int8 NOT NULL)
                    """,
                ]),
            PostgresMigration(
                3, "sessions of people's pages", oldestUser: 1,
                ["ALTER TABLE console_sessions ADD COLUMN kind text NOT NULL DEFAULT 'console'"]),
            PostgresMigration(
                4, "indexes of the audit log", oldestUser: 1,
                [
                    "CREATE INDEX audit_log_by_account ON audit_log (account, number)",
                    "CREATE INDEX audit_log_by_actor ON audit_log (actor, number)",
                    "CREATE INDEX audit_log_by_container ON audit_log (container, number)",
                    "CREATE INDEX audit_log_of_consent ON audit_log (account, number) WHERE action = 'account.consent'",
                    "CREATE INDEX audit_log_of_consent_by_actor ON audit_log (actor, number) WHERE action = 'account.consent'",
                ]),
            PostgresMigration(
                5, "identities", oldestUser: 1,
                [
                    """
                    CREATE TABLE identities (
                        issuer text COLLATE "C", subject text COLLATE "C", account text COLLATE "C" NOT NULL, label text NOT NULL,
                        added int8 NOT NULL, PRIMARY KEY (issuer, subject))
                    """,
                    "CREATE INDEX identities_by_account ON identities (account)",
                ]),
            PostgresMigration(
                6, "systems of sessions", oldestUser: 1,
                ["ALTER TABLE sessions ADD COLUMN system text NOT NULL DEFAULT ''"]),
            PostgresMigration(
                7, "what devices were refused", oldestUser: 1,
                [
                    """
                    CREATE TABLE sync_failures (
                        id text COLLATE "C" PRIMARY KEY, container text COLLATE "C" NOT NULL, environment text NOT NULL,
                        account text COLLATE "C" NOT NULL, scope text NOT NULL, operation text NOT NULL, zone text NOT NULL,
                        type text NOT NULL, record text NOT NULL, code text NOT NULL, reason text NOT NULL, first_at int8 NOT NULL,
                        at int8 NOT NULL, count int8 NOT NULL)
                    """,
                    "CREATE INDEX sync_failures_by_at ON sync_failures (at)",
                    "CREATE INDEX sync_failures_by_container ON sync_failures (container, at)",
                    "CREATE INDEX sync_failures_by_account ON sync_failures (account, at)",
                    "CREATE INDEX audit_log_of_sign_in ON audit_log (subject) WHERE action = 'sign-in'",
                ]),
            PostgresMigration(
                8, "which device was refused, and which field", oldestUser: 1,
                ["session", "field", "field_type"].map { column in
                    "ALTER TABLE sync_failures ADD COLUMN \(column) text NOT NULL DEFAULT ''"
                }),
            PostgresMigration(
                9, "names of devices that were refused", oldestUser: 1,
                ["ALTER TABLE sync_failures ADD COLUMN device text NOT NULL DEFAULT ''"]),
        ], of: "credentials")

    // Rows

    static func environment(_ text: String) throws(PostgresError) -> StoreEnvironment {
        guard let environment = StoreEnvironment(rawValue: text) else {
            throw PostgresError(.decoding, "the database has '\(text.prefix(100))' in place of an environment")
        }
        return environment
    }

    static let tokenColumns = "id, digest, container, environment, name, redirect, popup, origins, made"

    static func token(_ row: PostgresRow) throws(PostgresError) -> StoredAPIToken {
        StoredAPIToken(
            id: try row.value(0), digest: [UInt8](try row.value(1, as: Data.self)), container: try row.value(2),
            environment: try environment(row.value(3)), name: String(decoding: try row.value(4, as: Data.self), as: UTF8.self),
            redirect: try row.value(5), popup: try row.value(6), origins: try row.value(7), made: try row.value(8))
    }

    static let keyColumns = "id, container, environment, name, account, public_key, made"

    static func key(_ row: PostgresRow) throws(PostgresError) -> StoredServerKey {
        StoredServerKey(
            id: try row.value(0), container: try row.value(1), environment: try environment(row.value(2)),
            name: String(decoding: try row.value(3, as: Data.self), as: UTF8.self), account: try row.value(4),
            publicKey: [UInt8](try row.value(5, as: Data.self)), made: try row.value(6))
    }

    static let sessionColumns = "id, account, container, environment, kind, began, kept, device, used, address, system"

    /// - Parameter place: The index of the column `id`.
    static func session(_ row: PostgresRow, from place: Int = 0) throws(PostgresError) -> StoredSession {
        StoredSession(
            id: [UInt8](try row.value(place, as: Data.self)), account: try row.value(place + 1),
            container: try row.value(place + 2), environment: try environment(row.value(place + 3)),
            kind: try row.value(place + 4), began: try row.value(place + 5), kept: try row.value(place + 6),
            device: try row.value(place + 7), system: try row.value(place + 10), used: try row.value(place + 8),
            address: try row.value(place + 9))
    }
}
