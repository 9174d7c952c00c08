import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkIdentity
import TidemarkModel
import TidemarkTesting

@testable import TidemarkCloudEngine
@testable import TidemarkPostgres

/// Goal: each of the requests that share a round trip gets its own answer, as new as the request. Method: look-ups that come at
/// once, beside writes of another server, and a look at the statements.
@Suite(.enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct PostgresTogetherTests {
    private static func place(_ owner: String, _ zone: String = "Zone") -> StoredZone.Place {
        .init(scope: .private, owner: owner, name: zone)
    }

    private static func record(_ name: String, in zone: StoredZone.ID, at change: Int64) -> StoredCloudRecord {
        let stamp = CloudRecord.Stamp(time: change, userRecordName: zone.owner)
        return StoredCloudRecord(
            zone: zone, name: name, type: "Note", fields: Data(name.utf8), parent: nil, changed: change, created: stamp,
            modified: stamp, isDeleted: false, dependsOn: [], assets: [], indexed: [:])
    }

    private func fill(_ storage: PostgresCloudStorage, _ owner: String, _ names: [String]) async throws {
        try await storage.write(owners: [owner]) { rows throws(CloudError) in
            let zone = try rows.save(StoredZone(place: Self.place(owner), made: 1, changed: 1)).id
            try rows.save(names.enumerated().map { Self.record($0.element, in: zone, at: Int64($0.offset) + 2) })
            try rows.setLastChange(Int64(names.count) + 1, of: owner)
        }
    }

    /// Looks records up as a request does; `nil` where the storage wants them to be read in a transaction.
    private func lookUp(
        _ names: [String], of owner: String, _ storage: PostgresCloudStorage
    ) async throws -> (zone: StoredZone?, records: [String: StoredCloudRecord])? {
        try await storage.readTogether(names, in: Self.place(owner)) { rows throws(CloudError) in
            guard let zone = try rows.zone(Self.place(owner)) else { return (nil, [:]) }
            return (zone, try rows.records(names, in: zone.id))
        }
    }

    @Test func `simultaneous look-ups get each their own records, in few statements`() async throws {
        let statements = Shared<[String]>([])
        let records = try await RecordsFixture { configuration in
            configuration.preparesStatements = false
            configuration.observesStatement = { sql in statements.change { $0.append(sql) } }
        }
        let storage = try await records.storage()
        let owners = ["_anna", "_ben", "_cleo\u{0}"]
        for owner in owners { try await fill(storage, owner, (0..<40).map { "\(owner) \($0)" }) }
        statements.change { $0 = [] }
        let count = 600
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                group.addTask {
                    let owner = owners[number % 3]
                    let names = (0..<number % 5).map { "\(owner) \((number + $0) % 50)" } + ["none"]
                    let found = try #require(try await lookUp(names, of: owner, storage))
                    #expect(found.zone?.place == Self.place(owner))
                    let wanted = names.filter { $0 != "none" && Int($0.split(separator: " ").last ?? "")! < 40 }
                    #expect(Set(found.records.keys) == Set(wanted), "\(names)")
                    for (name, record) in found.records {
                        #expect(record.fields == Data(name.utf8) && record.damage == nil && record.zone.owner == owner)
                    }
                }
            }
            try await group.waitForAll()
        }
        let asked = statements.value
        #expect(asked.count { $0.contains("tidemark_zones") } <= count / 2, "\(asked.count)")
        #expect(!asked.contains { $0.hasPrefix("BEGIN") })
        // A single look-up is one statement, after the one that sets the time limits.
        statements.change { $0 = [] }
        _ = try await lookUp(["_ben 3"], of: "_ben", storage)
        #expect(statements.value.count { !$0.contains("set_config") } == 1, "\(statements.value)")
        #expect(try await lookUp(["x"], of: "_nobody", storage)?.zone == nil)
    }

    @Test func `a look-up sees what another server has committed before it, also among many others`() async throws {
        let records = try await RecordsFixture()
        let (here, there) = (try await records.storage(), try await records.storage(on: records.fixture.other()))
        try await fill(here, "_anna", ["a", "b"])
        let isDone = Shared(false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { while !isDone.value { _ = try await lookUp(["a", "b"], of: "_anna", there) } }
            }
            for round in 0..<100 {
                let change = Int64(10 + round)
                try await here.write(owners: ["_anna"]) { rows throws(CloudError) in
                    let zone = try rows.zone(Self.place("_anna"))!
                    try rows.save([Self.record("a", in: zone.id, at: change)])
                    try rows.setLastChange(change, of: "_anna")
                }
                #expect(try await lookUp(["a"], of: "_anna", there)?.records["a"]?.changed == change)
            }
            try await here.write(owners: ["_anna"]) { rows throws(CloudError) in
                var zone = try rows.zone(Self.place("_anna"))!
                (zone.state, zone.changed) = (.deleted, 200)
                _ = try rows.save(zone)
                try rows.setLastChange(200, of: "_anna")
            }
            #expect(try await lookUp(["a"], of: "_anna", there)?.zone?.state == .deleted)
            isDone.change { $0 = true }
            try await group.waitForAll()
        }
    }

    @Test func `a body that asks for other rows gets a transaction instead`() async throws {
        let storage = try await RecordsFixture().storage()
        try await fill(storage, "_anna", ["a"])
        let place = Self.place("_anna")
        /// Reads something that was not looked up.
        @Sendable func ask(_ number: Int, _ rows: any CloudTransaction) throws(CloudError) {
            guard let zone = try rows.zone(place) else { return }
            switch number {
            case 0: _ = try rows.shares(in: zone.id)
            case 1: _ = try rows.zone(Self.place("_ben"))
            case 2: _ = try rows.records(["b"], in: zone.id)
            case 3: _ = try rows.records(["a"], in: .init(owner: "_ben", number: zone.number))
            default:
                do throws(CloudError) {
                    _ = try rows.share(named: "a", in: zone.id)
                } catch {
                    return
                }
            }
        }
        for number in 0..<5 {
            let answer: Bool? = try await storage.readTogether(["a"], in: place) { rows throws(CloudError) in
                try ask(number, rows)
                return true
            }
            #expect(answer == nil, "\(number)")
        }
        let error = CloudError(.unknownItem, "the body's own")
        await #expect(throws: error) {
            let _: Bool? = try await storage.readTogether(["a"], in: place) { _ throws(CloudError) in throw error }
        }
    }

    @Test func `damage is found in rows that are read together`() async throws {
        let records = try await RecordsFixture()
        let storage = try await records.storage()
        try await fill(storage, "_anna", ["a", "b"])
        try await records.fixture.sql("UPDATE tidemark_records SET fields = '\\x00' WHERE name = 'a'")
        let found = try #require(try await lookUp(["a", "b"], of: "_anna", storage))
        #expect(found.records["a"]?.damage != nil && found.records["b"]?.damage == nil)
        try await records.fixture.sql("UPDATE tidemark_zones SET made = 7")
        let error = await #expect(throws: CloudError.self) { _ = try await lookUp(["a"], of: "_anna", storage) }
        #expect(error?.code == .recordDamaged)
    }

    @Test func `a statement that fails has no effect on those that are sent with it`() async throws {
        for prepares in [true, false] {
            let fixture = try await Fixture { $0.preparesStatements = prepares }
            let database = fixture.database
            let answers = await withTaskGroup(of: (Int, Int64?).self) { group in
                for number in 0..<200 {
                    group.addTask {
                        let result = await withCheckedContinuation { continuation in
                            database.batcher.send {
                                .init(command: PostgresCommand("SELECT 60 / $1", [Int64(number % 3)])) {
                                    continuation.resume(returning: $0)
                                }
                            }
                        }
                        let value: Int64? = try? result.get()[0].value(0)
                        return (number, value)
                    }
                }
                return await group.reduce(into: [Int: Int64?]()) { $0[$1.0] = $1.1 }
            }
            #expect(answers.count == 200)
            for (number, answer) in answers { #expect(answer == [nil, 60, 30][number % 3], "\(number)") }
            await database.close()
        }
    }

    @Test func `an account that is closed or suspended at one server is so at the next request to another`() async throws {
        let fixture = try await Fixture()
        func server() async throws -> (accounts: PostgresAccountStorage, credentials: CredentialStore) {
            let database = try fixture.other()
            return (
                try await PostgresAccountStorage.open(database),
                try CredentialStore(try await PostgresCredentialStorage.open(database), passwordLogN: 4)
            )
        }
        let (here, there) = (try await server(), try await server())
        var account = try await here.accounts.add(
            StoredAccount(
                id: "anna", email: "anna@example.org", name: PersonName(givenName: "Anna", familyName: "Berg"), quota: 5,
                status: .available))
        try await here.credentials.addContainer("journal")
        let token = try await here.credentials.makeSession(
            account: "anna", container: "journal", environment: .development, kind: .device)
        let isDone = Shared(false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { while !isDone.value { _ = try await there.credentials.session(token.text) } }
            }
            for round in 0..<100 {
                account.status = round % 2 == 0 ? .temporarilyUnavailable : .available
                account.quota = Int64(round)
                try await here.accounts.update(account)
                #expect(try await there.credentials.session(token.text).get().holder == account)
                #expect(try await there.accounts.account(id: "anna") == account)
            }
            try await here.accounts.remove("anna")
            #expect(try await there.credentials.session(token.text).get().holder == nil)
            try await here.credentials.endSession(id: token.session.id)
            await #expect(throws: SessionFailure.revoked) { try await there.credentials.session(token.text).get() }
            isDone.change { $0 = true }
            try await group.waitForAll()
        }
    }
}
