import TestSupport
import Testing

@testable import TidemarkIdentity

@Suite("The contract of credential storages, in a file", .timeLimit(.minutes(30)))
struct CredentialStorageTests {
    @Test(arguments: CredentialStorageContract.checks)
    func `a file keeps the contract, also if two storages use it`(
        _ check: StorageCheck<CredentialStorageContract.Subject>
    ) async throws {
        let scratch = try Scratch()
        try await check.run {
            try SQLiteCredentialStorage(at: scratch["cloud"], second: 1_799_999_999) { count in
                (0..<count).map { _ in UInt8.random(in: .min ... .max) }
            }
        }
    }
}
