import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkIdentity
import TidemarkModel
import TidemarkServer
import TidemarkTesting

/// A cloud behind HTTP: the real server, on any free port, and our client.
final class ServedCloudSubject: CloudContract.Subject {
    let fixture: FaultyCloudFixture
    let access: CredentialStore
    private let server: ListeningServer
    private let apiToken: String

    var address: ServerAddress { server.address }

    /// - Parameter apiToken: An API token of the container in development.
    init(_ fixture: FaultyCloudFixture, _ access: CredentialStore, _ server: ListeningServer, _ apiToken: String) {
        (self.fixture, self.access, self.server, self.apiToken) = (fixture, access, server, apiToken)
    }

    /// Adds the container of the checks to the served ones, and returns an API token of it.
    static func apiToken(_ access: CredentialStore) async throws -> String {
        try await access.addContainer(FaultyCloudFixture.container)
        return try await access.addAPIToken(
            container: FaultyCloudFixture.container, environment: .development, name: "tests",
            callback: .popup(origin: "https://app.example.org")
        ).text
    }

    /// - Parameter assets: Makes the storage of assets over that of the cloud's directory.
    static func started(
        limits: ServerLimits? = nil, assets: EmbeddedCloud.AssetsOfContainer? = nil
    ) async throws -> ServedCloudSubject {
        let fixture = try FaultyCloudFixture(observing: nil, assets: assets)
        let access = try CredentialStore(at: fixture.directory)
        let token = try await apiToken(access)
        let server = try await ListeningServer.started(
            over: fixture.directory, limits: limits, cloud: assets == nil ? nil : fixture.cloud)
        return ServedCloudSubject(fixture, access, server, token)
    }

    /// The cloud for an account that has signed in.
    func cloud(_ account: String?, environment: StoreEnvironment = .development) async throws -> HTTPCloud {
        let store = SessionMemory()
        let cloud = HTTPCloud(
            address, container: FaultyCloudFixture.container, environment: environment, session: store, apiToken: apiToken)
        if let id = try await fixture.id(account) {
            let token = try await access.makeSession(
                account: id, container: FaultyCloudFixture.container, environment: environment, kind: .device)
            let name = EmbeddedCloud.userRecordName(id, in: FaultyCloudFixture.container)
            store.keep(try CloudSession(cloud: cloud.name, userRecordName: name, token: token.text))
        }
        return cloud
    }

    func database(_ scope: DatabaseScope, account: String?) async throws -> any CloudDatabase {
        try await cloud(account).database(scope)
    }

    func deployed(_ scope: DatabaseScope, account: String) async throws -> any CloudDatabase {
        try await fixture.deploy()
        return try await cloud(account, environment: .production).database(scope)
    }

    func index(_ field: String, of type: String) async throws { try await fixture.index(field, of: type) }
    func setQuota(_ bytes: Int64, of account: String) async throws { try await fixture.setQuota(bytes, of: account) }
    func setStatus(_ status: CloudAccount.Status, of account: String) async throws {
        try await fixture.setStatus(status, of: account)
    }
    func describe(_ account: String, name: PersonName, phone: String) async throws {
        try await fixture.describe(account, name: name, phone: phone)
    }
    func purge(_ zone: CloudZoneID, of account: String) async throws { try await fixture.purge(zone, of: account) }
}

/// Goal: a cloud behind HTTP does what every cloud does. Method: the checks of `TidemarkTesting`, each on a server of its own.
@Suite(.timeLimit(.minutes(30))) struct ServedContractTests {
    @Test(.timeLimit(.minutes(30)), arguments: CloudContract.checks)
    func `a cloud behind HTTP fulfils the contract`(check: CloudContract.Check) async throws {
        try await check.run(ServedCloudSubject.started())
    }
}
