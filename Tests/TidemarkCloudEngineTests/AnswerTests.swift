import TestSupport
import Testing
import TidemarkCloud

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a request that a client sends again with its client token is done once, even if the server's clock jumps. Method: the
/// checks of every storage, over SQLite.
@Suite(.timeLimit(.minutes(30))) struct AnswerTests {
    @Test(arguments: AnswerStorageContract.all)
    func `answers in SQLite are removed by age and in order`(check: StorageCheck<any CloudStorage>) async throws {
        // The scratch folder goes with the tenants.
        let tenants = try Tenants()
        try await check.run(tenants.inner().engine.storage)
        withExtendedLifetime(tenants) {}
    }
}
