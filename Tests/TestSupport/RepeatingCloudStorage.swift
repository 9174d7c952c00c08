import Foundation
import TidemarkCloud
import TidemarkCloudEngine

/// A storage that runs each body twice: first in a transaction that is rolled back, as after a serialisation failure, and then for good.
package struct RepeatingCloudStorage: CloudStorage {
    private static let rolledBack = CloudError(.internalError, "this transaction is rolled back, and runs again")
    private let storage: any CloudStorage

    package init(_ storage: any CloudStorage) { self.storage = storage }

    package var key: [UInt8] { storage.key }
    package var began: Int64 { storage.began }
    package var commonChanges: Int64 { storage.commonChanges }

    package func read<Answer: Sendable>(
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        _ = try await storage.read(body)
        return try await storage.read(body)
    }

    package func write<Answer: Sendable>(
        owners: WrittenOwners, _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        try await write(owners: owners, expecting: nil, body)
    }

    package func write<Answer: Sendable>(
        owners: WrittenOwners, expecting reads: ExpectedReads?,
        _ body: @escaping @Sendable (any CloudTransaction) throws(CloudError) -> Answer
    ) async throws(CloudError) -> Answer {
        do throws(CloudError) {
            try await storage.write(owners: owners, expecting: reads) { rows throws(CloudError) -> Void in
                _ = try body(rows)
                throw Self.rolledBack
            }
        } catch {
            guard error.reason == Self.rolledBack.reason else { throw error }
        }
        return try await storage.write(owners: owners, expecting: reads, body)
    }

    // A body that can't be run twice runs once.
    package func readInline<Answer>(
        _ body: (any CloudTransaction) throws(CloudError) -> Answer
    ) throws(CloudError) -> Answer? { nil }

    package func claimSweep(every period: Duration) async throws(CloudError) -> SweepClaim? {
        try await storage.claimSweep(every: period)
    }
    package func renewSweep(_ claim: SweepClaim) async throws(CloudError) -> SweepClaim? { try await storage.renewSweep(claim) }
    package func endSweep(_ claim: SweepClaim) async throws(CloudError) { try await storage.endSweep(claim) }
    package func emptyLog() async { await storage.emptyLog() }
}
