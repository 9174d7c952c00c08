import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkTesting

/// Goal: a database that is to go wrong does so as it was told, the same for the same seed, and else does what the one behind it does.
/// Method: requests by seed; records as the cloud has them afterwards.
@Suite(.timeLimit(.minutes(30))) struct FaultyDatabaseTests {
    private let zone = CloudZoneID("Journal")
    private let subject: EmbeddedCloudSubject

    init() throws { subject = try EmbeddedCloudSubject() }

    private func database() async throws -> any CloudDatabase {
        let database = try await subject.database(.private, account: "anna@example.org")
        try await database.modifyZones(saving: [zone], deleting: [])
        return database
    }

    private func save(_ name: String, to database: any CloudDatabase) async throws {
        let record = CloudRecord(CloudRecordID(name, in: zone), type: "Destination", fields: ["n": .int64(1)])
        _ = try await database.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.forceUpdate, record)]))
    }

    @Test func `the same seed has the same go wrong`() async throws {
        let database = try await database()
        func run(_ seed: UInt64) async throws -> [String] {
            let nasty = FaultyDatabase(database, plan: .all(rate: 0.5, seed: seed), sleep: { _ in })
            var outcomes: [String] = []
            for number in 0..<60 {
                do {
                    try await save("n\(number)", to: nasty)
                    outcomes.append("done")
                } catch let error as CloudError {
                    outcomes.append(error.code.rawValue)
                }
            }
            return outcomes
        }
        let first = try await run(42)
        #expect(try await run(42) == first)
        #expect(try await run(43) != first)
        #expect(Set(first).isSuperset(of: ["done", "networkUnavailable", "networkFailure", "zoneBusy", "requestRateLimited"]))
    }

    @Test func `a lost reply leaves it done, what did not get there does not`() async throws {
        let database = try await database()
        let nasty = FaultyDatabase(database, plan: FaultPlan(seed: 1))
        nasty.inject([.lostReply, .networkUnavailable])
        await #expect(throws: CloudError(.networkFailure, "")) { try await save("lost", to: nasty) }
        await #expect(throws: CloudError(.networkUnavailable, "")) { try await save("never", to: nasty) }
        try await save("done", to: nasty)
        let found = try await database.lookup(["lost", "never", "done"], in: zone, desiredKeys: [])
        #expect(found.map { (try? $0.get()) != nil } == [true, false, true])
        #expect(nasty.counts == [.lostReply: 1, .networkUnavailable: 1])
        nasty.inject([.changeTokenExpired])
        let token = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil).token
        await #expect(throws: CloudError(.changeTokenExpired, "")) {
            try await nasty.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
        }
    }
}
