import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkIdentity
import TidemarkSQLite
import TidemarkServer
import TidemarkStore
import TidemarkTesting

/// Goal: a server with a certificate of a private authority is trusted if that authority is named, and otherwise not. Method: the
/// real server with a certificate that is its own authority, the client, and the tool as a process.
@Suite(.timeLimit(.minutes(30))) struct OwnAuthorityTests {
    private let scratch: Scratch
    private let fixture: FaultyCloudFixture
    private let server: ListeningServer
    private let authority: URL
    private static let password = "kurz vor Narvik"

    init() async throws {
        scratch = try Scratch()
        fixture = try FaultyCloudFixture()
        authority = try scratch.write(TestCertificate.certificate + "\n", to: "authority.pem")
        let key = try scratch.write(TestCertificate.key + "\n", to: "key.pem")
        let access = try CredentialStore(at: fixture.directory)
        try await access.addContainer(FaultyCloudFixture.container)
        try await access.setPassword(Self.password, of: try #require(try await fixture.id("anna@example.org")))
        server = try await ListeningServer.started(
            over: fixture.directory, tls: .init(certificateChain: authority.path, privateKey: key.path))
    }

    private func signIn(_ trustRoots: TrustRoots) async throws -> String {
        try await HTTPCloud(server.address, container: FaultyCloudFixture.container, trustRoots: trustRoots)
            .signIn(email: "anna@example.org", password: Self.password)
    }

    @Test func `the tool trusts a server by the named authority, not by those of the machine`() async throws {
        do {
            _ = try await signIn(.system)
            Issue.record("it was trusted")
        } catch let error as CloudError {
            #expect(error.code == .networkUnavailable)
            // The message of the library names no command-line option.
            #expect(error.reason.hasSuffix("or name the server's own authority"))
        }
        #expect(try await !signIn(TrustRoots(pem: TestCertificate.certificate)).isEmpty)
        #expect(try await !signIn(TrustRoots(contentsOf: authority)).isEmpty)
    }

    @Test(arguments: ["", "mine", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", TestCertificate.key])
    func `a file without a certificate is refused with its path`(text: String) throws {
        let file = try scratch.write(text, to: "none.pem")
        do throws(CloudError) {
            _ = try TrustRoots(contentsOf: file)
            Issue.record("it was taken")
        } catch {
            #expect(error.code == .invalidArguments)
            #expect(error.reason.hasPrefix("\(file.path): there is "))
        }
        #expect(throws: CloudError.self) { try TrustRoots(contentsOf: scratch["nowhere.pem"]) }
    }

    @Test func `the tool stores the authority with the account, until the machine's authorities are chosen again`() async throws {
        let tool = try Tool()
        let container = scratch["anna.tidemark"].path
        let input = try scratch.write(Self.password + "\n", to: "password")
        func signIn(_ more: [String], expecting status: Int32) async throws -> String {
            let words = [
                "account", "sign-in", container, "--server", server.address.description, "--email", "anna@example.org",
                "--container",
                FaultyCloudFixture.container, "--password-stdin",
            ]
            let result = try await tool.run(words + more, input: input)
            #expect(result.status == status, "\(result.output)\(result.errors)")
            return result.errors
        }
        #expect(try await signIn(["--ca", scratch["nowhere.pem"].path], expecting: 64).contains("nowhere.pem"))
        let distrusted = try await signIn([], expecting: 75)
        #expect(distrusted.contains("its certificate is not trusted") && distrusted.contains("--ca FILE"))
        #expect(!FileManager.default.fileExists(atPath: container))
        _ = try await signIn(["--ca", authority.path], expecting: 0)
        // The tool no longer needs the file.
        try FileManager.default.removeItem(at: authority)
        #expect(try await tool.run(["sync", container]).status == 0)
        _ = try await signIn([], expecting: 0)
        #expect(try await tool.run(["account", "sign-out", container]).status == 0)
        _ = try await signIn([], expecting: 0)
        _ = try await signIn(["--ca", "system"], expecting: 75)
        #expect(try await tool.run(["sync", container]).status == 0)
        // A running synchronisation would go on with the authority with which it began.
        let watching = try tool.start(["sync", container, "--watch", "--json"])
        #expect(await watching.line()?.contains(#""type":"setup""#) == true)
        let another = try scratch.write("Of the harbour:\n" + TestCertificate.certificate + "\n", to: "another.pem")
        #expect(try await signIn(["--ca", another.path], expecting: 75).contains("another authority"))
        _ = try await signIn([], expecting: 0)
        await watching.kill()
    }

    @Test func `a synchronisation that does not trust the server names the command that mends it`() async throws {
        let tool = try Tool()
        let container = scratch["ben.tidemark"].path
        let directory = try ContainerDirectory(openingOrCreatingAt: scratch["ben.tidemark"])
        let (address, user) = (server.address.description, "_anna")
        try await RecordStore(container: directory).updateAccountSettings { settings in
            settings.cloud = address
            settings.email = "anna@example.org"
            settings.userRecordName = user
        }
        let name = try HTTPCloud(server.address, container: StoreReader(container: directory).accountSettings().cloudContainer)
            .name
        try SessionFile(at: directory.session).keep(CloudSession(cloud: name, userRecordName: user, token: "token"))
        let result = try await tool.run(["sync", container, "--patience", "0"])
        #expect(result.status == 75, "\(result.errors)")
        #expect(result.errors.contains("own authority with 'tidemark account sign-in \(container) --server \(address)"))
        #expect(result.errors.contains("--ca FILE"))
    }
}
