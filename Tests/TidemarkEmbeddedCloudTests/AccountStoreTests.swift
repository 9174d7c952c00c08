import TestSupport
import Testing

@testable import TidemarkEmbeddedCloud

@Suite("The contract of account storages, in a file", .timeLimit(.minutes(30)))
struct AccountStoreTests {
    @Test(arguments: AccountStorageContract.checks)
    func `a file keeps the contract, also with two storages`(_ check: StorageCheck<AccountStorageContract.Subject>) async throws {
        let scratch = try Scratch()
        try await check.run { try AccountStore(at: scratch["accounts.sqlite"]) }
    }
}
