import TestSupport
import Testing
import TidemarkCloud

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: a request that is sent again with its client token is done once, whatever the server's clock does. Method: the checks of every
/// storage, over SQLite.
@Suite(.timeLimit(.minutes(30))) struct AnswerTests {
    @Test(arguments: AnswerStorageContract.all)
    func `answers in SQLite end by age and order`(check: StorageCheck<any CloudStorage>) async throws {
        // The folder goes with them.
        let tenants = try Tenants()
        try await check.run(tenants.inner().engine.storage)
        withExtendedLifetime(tenants) {}
    }
}
