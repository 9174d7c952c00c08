import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkTesting

/// Goal: every cloud does what the contract says. Method: the checks of `TidemarkTesting`, each on a cloud of its own.
@Suite(.timeLimit(.minutes(30))) struct ContractTests {
    /// An embedded cloud in a folder of the test's own.
    final class Embedded: CloudContract.Subject {
        private let tended: FaultyCloudFixture

        init() throws { tended = try FaultyCloudFixture() }

        func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase {
            try tended.cloud.database(scope, of: FaultyCloudFixture.container, account: try await tended.id(account))
        }

        func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase {
            try await tended.deploy()
            return try tended.cloud.database(
                scope, of: FaultyCloudFixture.container, environment: .production, account: try await tended.id(account))
        }

        func index(_ field: String, of type: String) async throws { try await tended.index(field, of: type) }
        func setQuota(_ bytes: Int64, of account: String) async throws { try await tended.setQuota(bytes, of: account) }
        func setStatus(_ status: CloudAccount.Status, of account: String) async throws {
            try await tended.setStatus(status, of: account)
        }
        func describe(_ account: String, name: PersonName, phone: String) async throws {
            try await tended.describe(account, name: name, phone: phone)
        }
        func purge(_ zone: CloudZoneID, of account: String) async throws { try await tended.purge(zone, of: account) }
    }

    @Test(.timeLimit(.minutes(30)), arguments: CloudContract.checks)
    func `the embedded cloud fulfils the contract`(check: CloudContract.Check) async throws {
        try await check.run(Embedded())
    }
}
