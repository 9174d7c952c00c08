import Foundation
import TestServers
import Testing
import TidemarkCloudEngine
import TidemarkPostgres

/// Prints what the way to the database costs. Only with `TIDEMARK_FIGURES`: other work on the machine would be measured as well.
@Suite(
    "Figures of the database",
    .enabled(
        if: PostgresServer.isInstalled && ProcessInfo.processInfo.environment["TIDEMARK_FIGURES"] != nil,
        "TIDEMARK_FIGURES is not set"), .serialized, .timeLimit(.minutes(30)))
struct FigureTests {
    @Test("Batches of 200 rows by unnest, with the five statements around them, and look-ups", arguments: [1, 4])
    func measures(_ writers: Int) async throws {
        let server = try await apart { try PostgresServer(settings: ["fsync = on", "shared_buffers = 256MB"]) }
        let fixture = try await Fixture(on: server)
        try await fixture.sql(
            "CREATE TABLE owners (owner text PRIMARY KEY, change int8 NOT NULL); CREATE TABLE records (owner text, name text, change int8, fields bytea, PRIMARY KEY (owner, name)); CREATE INDEX ON records (owner, change)"
        )
        let batches = 100
        var began = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<writers {
                group.addTask {
                    let owner = "owner\(writer)"
                    _ = try await fixture.database.query("INSERT INTO owners VALUES ($1, 0)", owner)
                    for batch in 0..<batches {
                        try await fixture.database.transaction { transaction in
                            try transaction.enqueue("SELECT 'answer' WHERE $1 = 'token'", "token\(batch)")
                            let change: Int64 = try transaction.query(
                                "SELECT change FROM owners WHERE owner = $1 FOR UPDATE", owner)[0].value(0)
                            let names = (0..<200).map { "record-\(batch % 20)-\($0)" }
                            try transaction.query(
                                "SELECT name, fields FROM records WHERE owner = $1 AND name = ANY ($2)", owner, names)
                            try transaction.enqueue(
                                """
                                INSERT INTO records SELECT $1, * FROM unnest($2, $3, $4)
                                ON CONFLICT (owner, name) DO UPDATE SET change = excluded.change, fields = excluded.fields
                                """, owner, names, (1...200).map { change + Int64($0) },
                                names.map { Data($0.utf8) + Data(repeating: 7, count: 200) })
                            try transaction.enqueue("UPDATE owners SET change = $2 WHERE owner = $1", owner, change + 200)
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let time = began.duration(to: .now) / .seconds(1)
        print("\(writers) writers: \(Int(Double(writers * batches * 200) / time)) rows a second in batches of 200")
        began = .now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for writer in 0..<writers {
                group.addTask {
                    for number in 0..<1000 {
                        _ = try await fixture.database.read { transaction in
                            try transaction.query(
                                "SELECT fields FROM records WHERE owner = $1 AND name = $2", "owner\(writer)",
                                "record-3-\(number % 200)")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        let reading = began.duration(to: .now) / .seconds(1)
        print("\(writers) readers: \(Int(Double(writers * 1000) / reading)) look-ups a second, each a transaction")
        let rows: Int64 = try await fixture.database.query("SELECT count(*) FROM records")[0].value(0)
        #expect(rows == Int64(writers * 4000))
        await fixture.database.close()
    }

    @Test("Look-ups of sessions by several requests at once", arguments: [1, 16, 256])
    func looksUpSessions(_ requests: Int) async throws {
        let fixture = try await Fixture()
        let storage = try await PostgresCredentialStorage.open(try fixture.other())
        try await storage.addContainer("journal", at: 0)
        @Sendable func session(_ number: Int) -> StoredSession {
            StoredSession(
                id: [UInt8](repeating: 7, count: 14) + [UInt8(number / 256), UInt8(number % 256)], account: "account\(number)",
                container: "journal", environment: .development, kind: "device", began: 1, kept: .max, device: "", used: 1,
                address: "")
        }
        for number in 0..<1_000 { _ = try await storage.add(session(number), ifPasswordIs: nil, auditing: nil) }
        let count = requests == 1 ? 3_000 : 20_000
        let began = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for request in 0..<requests {
                group.addTask {
                    for number in 0..<(count / requests) {
                        let wanted = session((number * 31 + request) % 1_000)
                        guard try await storage.session(wanted.id) == wanted else { throw CancellationError() }
                    }
                }
            }
            try await group.waitForAll()
        }
        let time = began.duration(to: .now) / .seconds(1)
        let each = time * Double(requests) / Double(count)
        print("\(requests) requests at once: \(Int(Double(count) / time)) sessions a second, \(Int(each * 1e6)) µs each")
    }
}
