import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: a server works behind a pooler that gives each transaction another connection. Method: PgBouncer with few connections before the
/// database, and many requests; it is killed meanwhile.
@Suite("A server behind PgBouncer", .enabled(if: PgBouncer.isInstalled, "\(PgBouncer.whyNot)"), .timeLimit(.minutes(30)))
struct PoolerTests {
    /// A server's access to a database: records and credentials through PgBouncer, and notifications past it.
    private struct Served {
        let bouncer: PgBouncer
        let fixture: Fixture
        let database: PostgresDatabase
        let storage: PostgresCloudStorage
        let credentials: CredentialStore

        init(_ change: (inout PostgresConfiguration) -> Void = { _ in }) async throws {
            fixture = try await Fixture()
            let server = fixture.server
            bouncer = try await apart { try PgBouncer(before: server, connections: 3) }
            database = try fixture.other(port: bouncer.port) {
                $0.preparesStatements = false
                $0.connections = 12
                change(&$0)
            }
            try await PostgresMigrations(PostgresCloudTables.migrations).run(on: database)
            storage = try await PostgresCloudStorage(database, container: "journal", environment: .development)
            credentials = try CredentialStore(try await PostgresCredentialStorage.open(database), passwordLogN: 4)
        }
    }

    private static func place(_ owner: String) -> StoredZone.Place { .init(scope: .private, owner: owner, name: "Zone") }

    /// Saves a record as a request does. The answer is stored under a token, so the save is done once, however often it is sent.
    private static func save(_ number: Int64, of owner: String, on storage: PostgresCloudStorage) async throws(CloudError) {
        try await storage.write(owners: [owner]) { rows throws(CloudError) in
            if try rows.answer(to: "token \(number)", of: owner) != nil { return }
            var found = try rows.zone(place(owner))
            if found == nil { found = try rows.save(StoredZone(place: place(owner), made: 1, changed: 1)) }
            guard let zone = found else { return }
            let name = "r\(number)"
            _ = try rows.records([name], in: zone.id)
            let change = try rows.lastChange(of: owner) + 1
            let stamp = CloudRecord.Stamp(time: number, userRecordName: owner)
            try rows.save([
                StoredCloudRecord(
                    zone: zone.id, name: name, type: "Note", fields: Data(name.utf8), parent: nil, changed: change,
                    created: stamp,
                    modified: stamp, isDeleted: false, dependsOn: [], assets: [], indexed: [:])
            ])
            try rows.addUsed(1, by: owner)
            try rows.setLastChange(change, of: owner)
            try rows.keep(Data("\(number)".utf8), to: "token \(number)", of: owner, at: 1)
        }
    }

    private static func lookUp(
        _ names: [String], of owner: String, on storage: PostgresCloudStorage
    ) async throws -> Set<String> {
        let found: Set<String>? = try await storage.readTogether(names, in: place(owner)) { rows throws(CloudError) in
            guard let zone = try rows.zone(place(owner)) else { return [] }
            return Set(try rows.records(names, in: zone.id).keys)
        }
        return try #require(found)
    }

    @Test("Saves, look-ups, queries and sign-ins pass PgBouncer, with more connections than it has to the database")
    func passes() async throws {
        let served = try await Served()
        let (storage, credentials) = (served.storage, served.credentials)
        try await credentials.addContainer("journal")
        let token = try await credentials.makeSession(
            account: "anna", container: "journal", environment: .development, kind: .device)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for owner in ["_anna", "_ben", "_cleo", "_dora"] {
                group.addTask { for number in 0..<25 { try await Self.save(Int64(number), of: owner, on: storage) } }
                for _ in 0..<4 {
                    group.addTask {
                        for number in 0..<50 {
                            _ = try await Self.lookUp(["r\(number % 25)", "none"], of: owner, on: storage)
                            #expect(try await credentials.session(token.text).get().account == "anna")
                        }
                    }
                }
            }
            try await group.waitForAll()
        }
        for owner in ["_anna", "_ben", "_cleo", "_dora"] {
            let names = Set((0..<25).map { "r\($0)" })
            #expect(try await Self.lookUp(Array(names), of: owner, on: storage) == names)
            let (used, found) = try await storage.read { rows throws(CloudError) in
                let zone = try rows.zone(Self.place(owner))!
                let query = IndexQuery(type: "Note", conditions: [], order: [])
                let found = try rows.find(query, in: zone.id, limit: 100, within: QueryBudget(steps: .max, time: .seconds(20)))
                return (try rows.used(by: owner), found.rows.count)
            }
            #expect(used == 25 && found == 25)
        }
        // Each transaction sets the time limits, and so does each round trip outside of a transaction.
        let limits = try await served.database.read { transaction in
            try ["statement_timeout", "enable_seqscan"].map { name -> String in
                try transaction.query("SELECT current_setting($1)", name)[0].value(0)
            }
        }
        #expect(limits == ["30s", "off"])
        try await credentials.endSession(id: token.session.id)
        await #expect(throws: SessionFailure.revoked) { try await credentials.session(token.text).get() }
        await served.database.close()
    }

    @Test("Notifications go past PgBouncer")
    func notifies() async throws {
        let served = try await Served()
        let direct = PostgresConfiguration(try PostgresAddress(served.fixture.server.address(served.fixture.name)))
        let listeners = try (0..<2).map { _ in try PostgresListener(direct, pace: .seconds(600)) }
        let heard = Shared(0)
        let stream = listeners[1].changes(of: "journal")
        let counting = Task { for await _ in stream { heard.change { $0 += 1 } } }
        let isListening = try await eventually { listeners[1].isConnected && heard.value > 0 }
        #expect(isListening)
        for _ in 0..<5 {
            let before = heard.value
            try await Self.save(Int64(before), of: "_anna", on: served.storage)
            listeners[0].post("journal")
            let isHeard = try await eventually { heard.value > before }
            #expect(isHeard)
        }
        for listener in listeners { await listener.close() }
        await counting.value
        await served.database.close()
    }

    @Test("Without an address past PgBouncer others are notified, and its sessions stay as they are")
    func notifiesThroughIt() async throws {
        let served = try await Served()
        let direct = PostgresConfiguration(try PostgresAddress(served.fixture.server.address(served.fixture.name)))
        let listener = try PostgresListener(direct, pace: .seconds(600))
        let heard = Shared(0)
        let stream = listener.changes(of: "journal")
        let counting = Task { for await _ in stream { heard.change { $0 += 1 } } }
        let isListening = try await eventually { listener.isConnected && heard.value > 0 }
        #expect(isListening)
        let poster = try PostgresListener(served.database.configuration, pace: .milliseconds(100), listens: false)
        for _ in 0..<20 {
            let before = heard.value
            poster.post("journal")
            let isHeard = try await eventually { heard.value > before }
            #expect(isHeard)
        }
        // Each read gets one of PgBouncer's three sessions.
        for _ in 0..<30 {
            let (setting, channels) = try await served.database.read { transaction -> (String, Int64) in
                let row = try transaction.query(
                    "SELECT current_setting('synchronous_commit'), (SELECT count(*) FROM pg_listening_channels())")[0]
                return (try row.value(0, as: String.self), try row.value(1, as: Int64.self))
            }
            #expect(setting == "on" && channels == 0)
        }
        for listener in [listener, poster] { await listener.close() }
        await counting.value
        await served.database.close()
    }

    @Test("While PgBouncer is killed and started again, requests wait or are refused, and each save is done once")
    func survivesKills() async throws {
        let served = try await Served { $0.patience = .seconds(20) }
        let (storage, bouncer) = (served.storage, served.bouncer)
        let isDone = Shared(false)
        let (saved, lookedUp, refused) = (Shared(0), Shared(0), Shared(0))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for owner in ["_anna", "_ben", "_cleo"] {
                group.addTask {
                    var number = 0 as Int64
                    while !isDone.value {
                        do throws(CloudError) {
                            try await Self.save(number, of: owner, on: storage)
                            number += 1
                            saved.change { $0 += 1 }
                        } catch {
                            // The client sends the request again.
                            guard [.networkFailure, .serviceUnavailable, .zoneBusy].contains(error.code) else { throw error }
                            refused.change { $0 += 1 }
                        }
                    }
                    let used = number
                    let counted = try await storage.read { rows throws(CloudError) in try rows.used(by: owner) }
                    // The last save may have been done, and not answered.
                    #expect(counted == used || counted == used + 1, "\(owner): \(counted) of \(used)")
                }
                group.addTask {
                    while !isDone.value {
                        do {
                            _ = try await Self.lookUp(["r0"], of: owner, on: storage)
                            lookedUp.change { $0 += 1 }
                        } catch let error as CloudError where error.code == .serviceUnavailable {
                            refused.change { $0 += 1 }
                        }
                    }
                }
            }
            group.addTask {
                for _ in 0..<5 {
                    let before = saved.value
                    _ = try await eventually { saved.value > before + 10 }
                    try await apart {
                        bouncer.stop()
                        usleep(300_000)
                        try bouncer.start()
                    }
                }
                let before = (saved.value, lookedUp.value)
                let goesOn = try await eventually { saved.value > before.0 + 10 && lookedUp.value > before.1 + 10 }
                #expect(goesOn)
                isDone.change { $0 = true }
            }
            try await group.waitForAll()
        }
        print("saves: \(saved.value), look-ups: \(lookedUp.value), refused: \(refused.value)")
        await served.database.close()
    }

    @Test("With prepared statements, the error behind PgBouncer names the option to give")
    func saysWhatToDo() async throws {
        let fixture = try await Fixture()
        let server = fixture.server
        let bouncer = try await apart { try PgBouncer(before: server, connections: 3) }
        let database = try fixture.other(port: bouncer.port) {
            $0.connections = 6
            $0.attempts = 1
        }
        let failures = await withTaskGroup(of: PostgresError?.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    await failure {
                        for number in 0..<100 {
                            _ = try await database.read { try $0.query("SELECT $1 + 1", Int64(number)) }
                        }
                    }
                }
            }
            return await group.reduce(into: [PostgresError]()) { if let error = $1 { $0.append(error) } }
        }
        #expect(!failures.isEmpty)
        #expect(failures.contains { $0.message.contains("Give --database-pooler") }, "\(failures)")
        await database.close()
    }
}
