import Testing
import TidemarkCloud

@testable import TidemarkPostgres

/// Goal: a failure that an operator or the system can cause is one that passes, to clients, and its message has the remedy.
/// Method: SQLSTATEs and texts of libpq, without a database.
@Suite(.timeLimit(.minutes(30))) struct CauseTests {
    private static func error(_ state: String, _ reason: String = "no", in sql: String = "SELECT 1") throws -> PostgresError {
        let configuration = PostgresConfiguration(try PostgresAddress("host=db1 dbname=journal"))
        return PostgresError(
            PostgresError.code(of: state), reason, state: state, constraint: nil, in: sql, of: configuration.address.name,
            configuration)
    }

    @Test(
        arguments: [
            // The password, the role, the database, its schema, its tables, a right.
            "28P01", "28000", "3D000", "3F000", "42P01", "42501",
            // Room, memory, connections.
            "53000", "53100", "53200", "53300", "53400",
            // A server that ends, has crashed, starts, or has dropped the database.
            "57P01", "57P02", "57P03", "57P04", "57P05", "08000", "08003", "08006", "08P01",
            "55000", "55006", "25006", "25P03", "25P04", "57014", "58030",
        ])
    func `clients are asked to come again after a failure that an operator or the system causes`(state: String) throws {
        let error = CloudError(postgres: try Self.error(state))
        #expect(error.code == .serviceUnavailable && error.retryAfter != nil, "\(state): \(error.code)")
    }

    @Test(arguments: ["42601", "42703", "22012", "23505", "XX000", "XX001", "0A000", "42P07", "54000", "54001"])
    func `a wrong statement, and damage to the database's files, is an internal error`(state: String) throws {
        #expect(CloudError(postgres: try Self.error(state)).code == .internalError)
    }

    @Test(arguments: ["40001", "40P01", "55P03"])
    func `an error that other transactions cause is a busy zone`(state: String) throws {
        #expect(CloudError(postgres: try Self.error(state)).code == .zoneBusy)
    }

    @Test func `a missing right has its remedy, and no SQL`() throws {
        let making = try Self.error("42501", "permission denied for schema public", in: "CREATE TABLE t (n int8)").message
        #expect(making.contains("permission denied for schema public. Make Tidemark's role the owner of the database"))
        #expect(making.contains("GRANT CREATE, USAGE ON SCHEMA public") && !making.contains("int8"))
        let reading = try Self.error("42501", "permission denied for table tidemark_records").message
        #expect(reading.contains("GRANT ALL on them") && !reading.contains("SELECT 1"))
    }

    @Test func `a database that takes no writes has the option that finds the one that does`() throws {
        let messages = [try Self.error("25006").message, PostgresError.readOnly("database 'journal' at db1:5432").message]
        for message in messages {
            #expect(message.hasPrefix("the database 'journal' at db1:5432 takes no writes: it is a standby, or read-only. "))
            #expect(message.contains("target_session_attrs=read-write"))
        }
    }

    private static func refusal(_ text: String, needsPassword: Bool = false, usedPassword: Bool = false) -> PostgresError {
        PostgresError(
            connectingTo: "database 'journal' at db1:5432", PostgresText.line(of: text), needsPassword: needsPassword,
            usedPassword: usedPassword)
    }

    @Test func `a connection that is not made has its remedy`() {
        let at = "connection to server at \"10.0.0.1\", port 5432 failed: "
        let wrong = Self.refusal("\(at)FATAL:  password authentication failed for user \"tidemark\"\n", usedPassword: true)
        #expect(wrong.code == .refused)
        #expect(wrong.message.contains("for user \"tidemark\". The password is the one in PGPASSWORD"))
        #expect(wrong.message.contains("in the file that PGPASSFILE names, or in a service file"))
        let none = Self.refusal("\(at)fe_sendauth: no password supplied\n", needsPassword: true)
        #expect(none.code == .refused)
        #expect(none.message.hasSuffix("supplied. Give the password by PGPASSWORD, PGPASSFILE or a service file"))
        let missing = Self.refusal("\(at)FATAL:  database \"journal\" does not exist\n")
        #expect(missing.message.hasSuffix("not exist. Make it: CREATE DATABASE … OWNER … ENCODING 'UTF8' TEMPLATE template0"))
        for reason in [
            "FATAL:  too many connections for role \"tidemark\"", "FATAL:  sorry, too many clients already",
            "FATAL:  remaining connection slots are reserved for non-replication superuser connections",
            "FATAL:  database \"journal\" is not currently accepting connections",
        ] {
            #expect(Self.refusal("\(at)\(reason)\n", usedPassword: true).code == .unreachable, "\(reason)")
        }
    }

    @Test func `lines of libpq are joined by semicolons, and its guesses are left out`() {
        let text = """
            connection to server at "10.0.0.1", port 5432 failed: Connection refused
            \tIs the server running on that host and accepting TCP/IP connections?
            connection to server at "10.0.0.2", port 5432 failed: timeout expired

            """
        #expect(
            PostgresText.line(of: text)
                == "connection to server at \"10.0.0.1\", port 5432 failed: Connection refused; connection to server at \"10.0.0.2\", port 5432 failed: timeout expired"
        )
        #expect(PostgresText.line(of: "\tonly a guess.\n") == "only a guess")
        #expect(PostgresText.line(of: "") == "")
    }

    @Test(
        arguments: [
            ("CREATE TABLE t (n int8)", "t"), ("CREATE TABLE t(n int8)", "t"), ("CREATE UNIQUE INDEX i ON t (n)", "i"),
            ("CREATE INDEX\n    i ON t (n)", "i"), ("CREATE SEQUENCE numbers", "numbers"),
            ("ALTER TABLE t ADD COLUMN s text", nil),
            ("CREATE FUNCTION f() RETURNS TABLE (n int8) AS $$ $$", nil), ("SELECT 1", nil), ("CREATE TABLE", nil),
        ] as [(String, String?)])
    func `migrations know the name of what a statement makes`(statement: String, name: String?) {
        #expect(PostgresMigrations.relation(madeBy: statement) == name)
    }
}
