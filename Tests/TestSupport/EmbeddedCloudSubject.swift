import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkTesting

/// An embedded cloud in a scratch folder, for the checks of the contract.
package final class EmbeddedCloudSubject: CloudContract.Subject {
    private let tended: FaultyCloudFixture

    package init() throws { tended = try FaultyCloudFixture() }

    package func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase {
        try tended.cloud.database(scope, of: FaultyCloudFixture.container, account: try await tended.id(account))
    }

    package func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase {
        try await tended.deploy()
        return try tended.cloud.database(
            scope, of: FaultyCloudFixture.container, environment: .production, account: try await tended.id(account))
    }

    package func index(_ field: String, of type: String) async throws { try await tended.index(field, of: type) }
    package func setQuota(_ bytes: Int64, of account: String) async throws { try await tended.setQuota(bytes, of: account) }
    package func setStatus(_ status: CloudAccount.Status, of account: String) async throws {
        try await tended.setStatus(status, of: account)
    }
    package func describe(_ account: String, name: PersonName, phone: String) async throws {
        try await tended.describe(account, name: name, phone: phone)
    }
    package func purge(_ zone: CloudZoneID, of account: String) async throws { try await tended.purge(zone, of: account) }
}
