import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkPostgres

@Suite("Values of statements", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct ValueTests {
    private func echo<Value: PostgresParameter & PostgresDecodable>(
        _ value: Value, _ database: PostgresDatabase
    ) async throws -> Value {
        try await database.query("SELECT $1", value)[0].value(0)
    }

    @Test("Values come back as they were sent", arguments: [true, false])
    func echoes(_ prepares: Bool) async throws {
        let database = try await Fixture { $0.preparesStatements = prepares }.database
        for number in [0, 1, -1, Int64.max, Int64.min] { #expect(try await echo(number, database) == number) }
        for number in [0, -0.5, .infinity, Double.greatestFiniteMagnitude, .leastNonzeroMagnitude] {
            #expect(try await echo(number, database) == number)
        }
        #expect(try await echo(true, database))
        #expect(try await !echo(false, database))
        for text in ["", "Gezeiten", "e\u{301}🌊", String(repeating: "ä", count: 100_000)] {
            #expect(Array(try await echo(text, database).utf8) == Array(text.utf8))
        }
        for bytes in [Data(), Data(0...255), Data(repeating: 0, count: 3_000_000)] {
            #expect(try await echo(bytes, database) == bytes)
        }
        #expect(try await echo(Int64?.none, database) == nil)
        #expect(try await echo(String?.some(""), database) == "")
        #expect(try await echo([Int64](), database) == [])
        #expect(try await echo([Int64.min, 0, .max], database) == [.min, 0, .max])
        #expect(try await echo([String?.some("a"), nil, ""], database) == ["a", nil, ""])
        #expect(try await echo([Data(0...255), Data()], database) == [Data(0...255), Data()])
        #expect(try await echo([true, false], database) == [true, false])
        #expect(try await echo([0.5, -1e300], database) == [0.5, -1e300])
        #expect(try await echo([Int64]?.none, database) == nil)
        await database.close()
    }

    @Test("Arrays become rows by unnest, with their NULLs")
    func unnests() async throws {
        let database = try await Fixture().database
        let rows = try await database.query(
            "SELECT * FROM unnest($1, $2, $3, $4) AS rows (a, b, c, d)", [Int64(1), 2, 3], ["x", nil, "z"],
            [Data([1]), nil, Data()], [Bool?.none, true, false])
        #expect(try rows.map { try $0.value(0, as: Int64.self) } == [1, 2, 3])
        #expect(try rows.map { try $0.value(1, as: String?.self) } == ["x", nil, "z"])
        #expect(try rows.map { try $0.value(2, as: Data?.self) } == [Data([1]), nil, Data()])
        #expect(try rows.map { try $0.value(3, as: Bool?.self) } == [nil, true, false])
        await database.close()
    }

    @Test("Small integers and counts are read as int8; another type, NULL and a missing column are errors that name the column")
    func decodes() async throws {
        let database = try await Fixture().database
        let row = try await database.query("SELECT 7::int4 AS four, 8::int2, count(*), 'x' AS text, NULL::int8 AS nothing")[0]
        #expect(try row.value(0, as: Int64.self) == 7)
        #expect(try row.value(1, as: Int64.self) == 8)
        #expect(try row.value(2, as: Int64.self) == 1)
        #expect(#expect(throws: PostgresError.self) { try row.value(3, as: Int64.self) }?.message.contains("'text'") == true)
        #expect(#expect(throws: PostgresError.self) { try row.value(4, as: Int64.self) }?.message.contains("'nothing'") == true)
        #expect(throws: PostgresError(.decoding, "")) { try row.value(5, as: Int64.self) }
        #expect(throws: PostgresError(.decoding, "")) { try row.value(-1, as: Int64.self) }
        await database.close()
    }

    @Test("A text with U+0000 is refused, and the connection goes on")
    func refusesZero() async throws {
        let database = try await Fixture().database
        let error = await failure { try await database.query("SELECT $1", "a\0b") }
        #expect(error?.state == "22021")
        #expect(try await database.query("SELECT $1", "ab")[0].value(0) == "ab")
        #expect(try await eventually { database.pool.statistics == .init(inUse: 0, idle: 1, waiting: 0) })
        await database.close()
    }
}
