import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel

/// Goal: whether a query is refused depends on its indexes, not on whether records were saved. Method: the same queries before
/// and after.
@Suite(.timeLimit(.minutes(30))) struct UnindexedTests {
    private let fixture = try! FaultyCloudFixture()

    private func answers(_ database: EmbeddedDatabase) async throws -> [String] {
        var answers: [String] = []
        for filters: [CloudQuery.Filter] in [
            [], [.init(.field("n"), .equals, .int64(1))], [.init(.recordName, .equals, .string("other"))],
        ] {
            do throws(CloudError) {
                let answer = try await database.query(
                    CloudQuery(recordType: "Note", filters: filters), in: .default, limit: nil, desiredKeys: nil,
                    continuation: nil)
                answers.append("\(answer.records.count)")
            } catch {
                answers.append("\(error.code.rawValue): \(error.reason)")
            }
        }
        return answers
    }

    private func save(_ database: EmbeddedDatabase) async throws {
        let record = CloudRecord(CloudRecordID("a", in: .default), type: "Note", fields: ["n": .int64(1)])
        let outcomes = try await database.modify(
            ModifyRecordsRequest(zone: .default, operations: [RecordOperation(.create, record)], isAtomic: false))
        guard case .saved = outcomes[0] else {
            Issue.record("\(outcomes)")
            return
        }
    }

    private static let unindexed = [
        "invalidArguments: Field 'recordName' is not marked queryable", "invalidArguments: Field 'n' is not marked queryable",
        "invalidArguments: Field 'recordName' is not marked queryable",
    ]

    @Test(arguments: [DatabaseScope.public, .private])
    func `queries of a type without indexes get the same answer before and after a save`(scope: DatabaseScope) async throws {
        let account = try await fixture.id("anna@example.org")
        func database(_ environment: StoreEnvironment) throws -> EmbeddedDatabase {
            try fixture.cloud.database(scope, of: FaultyCloudFixture.container, environment: environment, account: account)
        }
        let (development, production) = (try database(.development), try database(.production))
        #expect(try await answers(development) == Self.unindexed)
        // A type that was not deployed is unknown, even in an empty zone.
        let unknown = try await answers(production)
        #expect(unknown.allSatisfy { $0.hasPrefix("unknownItem: ") }, "\(unknown)")
        try await save(development)
        #expect(try await answers(development) == Self.unindexed)
        try await fixture.deploy()
        #expect(try await answers(production) == Self.unindexed)
        try await save(production)
        #expect(try await answers(production) == Self.unindexed)
    }
}
