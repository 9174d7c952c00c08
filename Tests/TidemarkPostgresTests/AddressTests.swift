import Testing
import TidemarkPostgres

@Suite("Addresses of databases", .timeLimit(.minutes(30)))
struct AddressTests {
    @Test(
        "A password in an address is refused, and the message does not repeat it",
        arguments: [
            "postgresql://tidemark:geheim@db1/tidemark", "host=db1 password=geheim", "postgresql://db1/tidemark?password=geheim",
            "host=db1 sslpassword=geheim", "postgresql://tidemark:geheim@[::1/tidemark", "host=db1 password=geheim x",
            "postgresql://tidemark:geheim@db1/tidemark?nothing=1",
        ])
    func refusesPasswords(_ text: String) throws {
        let error = #expect(throws: PostgresError(.address, "")) { try PostgresAddress(text) }
        #expect(error?.message.contains("geheim") == false)
    }

    @Test("Addresses of libpq are read, and named without secrets")
    func reads() throws {
        #expect(try PostgresAddress("postgresql://t@db1:5433/journal").name == "database 'journal' at db1:5433")
        #expect(
            try PostgresAddress("postgresql://t@db1,db2:6000,db3/journal?target_session_attrs=read-write").name
                == "database 'journal' at db1:5432, db2:6000, db3:5432")
        #expect(try PostgresAddress("host=/run/pg dbname=journal").name == "database 'journal' at /run/pg:5432")
        #expect(try PostgresAddress("service=journal").name == "database of the service 'journal'")
    }

    @Test("An unknown option is named")
    func namesOptions() throws {
        let error = #expect(throws: PostgresError(.address, "")) { try PostgresAddress("host=db1 hots=db2") }
        #expect(error?.message.contains("hots") == true)
    }

    @Test(
        "The address of another kind of database is answered with one of PostgreSQL",
        arguments: ["mysql://x/y", "sqlite://cloud.db"])
    func refusesOtherSchemes(_ text: String) throws {
        let error = #expect(throws: PostgresError(.address, "")) { try PostgresAddress(text) }
        let scheme = text.prefix { $0 != ":" }
        #expect(error?.message.contains("begins with '\(scheme)://'") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("postgresql://USER@HOST/DATABASE") == true)
    }
}
