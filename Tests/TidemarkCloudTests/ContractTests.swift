import TestSupport
import Testing
import TidemarkTesting

/// Goal: every cloud does what the contract says. Method: the checks of `TidemarkTesting`, each on a cloud of its own.
@Suite(.timeLimit(.minutes(30))) struct ContractTests {
    @Test(.timeLimit(.minutes(30)), arguments: CloudContract.checks)
    func `the embedded cloud fulfils the contract`(check: CloudContract.Check) async throws {
        try await check.run(EmbeddedCloudSubject())
    }
}
