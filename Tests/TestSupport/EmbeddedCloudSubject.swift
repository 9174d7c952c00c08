import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkTesting

/// An embedded cloud in a scratch folder, for the checks of the contract.
package final class EmbeddedCloudSubject: CloudContract.Subject {
    private let fixture: FaultyCloudFixture

    package init() throws { fixture = try FaultyCloudFixture() }
    /// - Parameter observe: Called with the text of each statement on records before it is prepared.
    package init(observing observe: @escaping @Sendable (String) -> Void) throws {
        fixture = try FaultyCloudFixture(observing: observe)
    }
    /// - Parameter storage: Makes the storage of a container's rows.
    package init(storage: @escaping EmbeddedCloud.StorageOfContainer) throws {
        fixture = try FaultyCloudFixture(observing: nil, storage: storage)
    }

    package func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase {
        try fixture.cloud.database(scope, of: FaultyCloudFixture.container, account: try await fixture.id(account))
    }

    package func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase {
        try await fixture.deploy()
        return try fixture.cloud.database(
            scope, of: FaultyCloudFixture.container, environment: .production, account: try await fixture.id(account))
    }

    package func index(_ field: String, of type: String) async throws { try await fixture.index(field, of: type) }
    package func setQuota(_ bytes: Int64, of account: String) async throws { try await fixture.setQuota(bytes, of: account) }
    package func setStatus(_ status: CloudAccount.Status, of account: String) async throws {
        try await fixture.setStatus(status, of: account)
    }
    package func describe(_ account: String, name: PersonName, phone: String) async throws {
        try await fixture.describe(account, name: name, phone: phone)
    }
    package func purge(_ zone: CloudZoneID, of account: String) async throws { try await fixture.purge(zone, of: account) }
}
