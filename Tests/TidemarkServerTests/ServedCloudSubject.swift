import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkHTTP
import TidemarkIdentity
import TidemarkModel
import TidemarkServer
import TidemarkTesting

/// A cloud behind HTTP: the real server, on any port that is free, and our client.
final class ServedCloudSubject: CloudContract.Subject {
    let tended: FaultyCloudFixture
    let access: CredentialStore
    private let server: ListeningServer
    private let apiToken: String

    var address: ServerAddress { server.address }

    private init(_ tended: FaultyCloudFixture, _ access: CredentialStore, _ server: ListeningServer, _ apiToken: String) {
        (self.tended, self.access, self.server, self.apiToken) = (tended, access, server, apiToken)
    }

    static func started(limits: ServerLimits? = nil) async throws -> ServedCloudSubject {
        let tended = try FaultyCloudFixture()
        let access = try CredentialStore(at: tended.directory)
        try await access.addContainer(FaultyCloudFixture.container)
        let token = try await access.addAPIToken(
            container: FaultyCloudFixture.container, environment: .development, name: "tests",
            callback: .popup(origin: "https://app.example.org"))
        let server = try await ListeningServer.started(over: tended.directory, limits: limits)
        return ServedCloudSubject(tended, access, server, token.text)
    }

    /// The cloud as an account sees it that has signed in.
    func cloud(_ account: String?, environment: StoreEnvironment = .development) async throws -> HTTPCloud {
        let store = SessionMemory()
        let cloud = HTTPCloud(
            address, container: FaultyCloudFixture.container, environment: environment, session: store, apiToken: apiToken)
        if let id = try await tended.id(account) {
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
        try await tended.deploy()
        return try await cloud(account, environment: .production).database(scope)
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

/// Goal: a cloud behind HTTP does what every cloud does. Method: the checks of `TidemarkTesting`, each on a server of its own.
@Suite(.timeLimit(.minutes(30))) struct ServedContractTests {
    @Test(.timeLimit(.minutes(30)), arguments: CloudContract.checks)
    func `a cloud behind HTTP fulfils the contract`(check: CloudContract.Check) async throws {
        try await check.run(ServedCloudSubject.started())
    }
}
