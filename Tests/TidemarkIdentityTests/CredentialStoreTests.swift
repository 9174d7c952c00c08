import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkIdentity

/// Goal: all openings of a credential store see the same, and only its owner can read it. Method: several openings of one
/// directory, files on disk, and files that are no credential store.
@Suite(.timeLimit(.minutes(30))) struct CredentialStoreTests {
    private func mode(_ url: URL) throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: url.path)[.posixPermissions] as? Int)
    }

    @Test func `only the owner can read the files of a credential store`() async throws {
        let served = try await Served()
        #expect(try mode(served.scratch["cloud"]) == 0o700)
        let names = try FileManager.default.contentsOfDirectory(atPath: served.scratch["cloud"].path)
        #expect(Set(names).isSuperset(of: ["access.sqlite", "access.sqlite-wal"]))
        for name in names { #expect(try mode(served.scratch["cloud/\(name)"]) == 0o600, "\(name)") }
    }

    @Test func `opening a file that others can read makes it private`() async throws {
        let served = try await Served()
        let file = served.scratch["cloud/access.sqlite"]
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file.path)
        _ = try served.opening()
        #expect(try mode(file) == 0o600)
    }

    @Test func `a directory that others can read is reported with the remedy, and left as it is`() async throws {
        let served = try await Served()
        let directory = served.scratch["cloud"]
        #expect(CredentialStore.exposure(of: directory) == nil)
        for mode in [0o755, 0o750, 0o701] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: directory.path)
            _ = try served.opening()
            let told = try #require(CredentialStore.exposure(of: directory))
            #expect(told.contains(String(mode, radix: 8)) && told.hasSuffix("'chmod 700 \(directory.path)'"))
            #expect(try self.mode(directory) == mode)
        }
        #expect(CredentialStore.exposure(of: served.scratch["none"]) == nil)
    }

    @Test func `a file that is no credential store is refused, and left as it is`() async throws {
        let scratch = try Scratch()
        try scratch.write("no database, and long enough to be looked at as one", to: "text/access.sqlite")
        try FileManager.default.createDirectory(at: scratch["folder/access.sqlite"], withIntermediateDirectories: true)
        try scratch.write("", to: "elsewhere")
        try FileManager.default.createDirectory(at: scratch["link"], withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: scratch["link/access.sqlite"], withDestinationURL: scratch["elsewhere"])
        for name in ["text", "folder", "link"] {
            #expect(throws: CredentialError(.storage, ""), "\(name)") { try CredentialStore(at: scratch[name]) }
        }
        #expect(try String(contentsOf: scratch["text/access.sqlite"], encoding: .utf8).hasPrefix("no database"))
        #expect(try Data(contentsOf: scratch["elsewhere"]).isEmpty)
    }

    @Test func `containers that were added are served, under valid names`() async throws {
        let served = try await Served()
        try await served.credentials.addContainer("a")
        try await served.credentials.addContainer("a")
        #expect(try served.credentials.containers() == ["a", served.container])
        #expect(try served.credentials.hasContainer("a"))
        #expect(try !served.credentials.hasContainer("b"))
        for name in ["", "../up", "a/b", ".hidden", "a..b", "a b", "ä", String(repeating: "a", count: 256), "a\0"] {
            let error = await refusal { try await served.credentials.addContainer(name) }
            #expect(error == CredentialError(.invalid, ""), "\(name)")
        }
        try await served.credentials.removeContainer("a")
        #expect(try served.credentials.containers() == [served.container])
        let error = await refusal { try await served.credentials.removeContainer("a") }
        #expect(error == CredentialError(.notFound, ""))
    }

    @Test func `another opening sees each change at once`() async throws {
        let served = try await Served()
        let other = try served.opening()
        #expect(try other.containers() == [served.container])
        try await served.credentials.addContainer("b")
        #expect(try other.hasContainer("b"))
        let (token, text) = try await served.credentials.addAPIToken(
            container: "b", environment: .production, name: "Web", callback: .redirect("https://example.org/"))
        #expect(try other.apiToken(text) == token)
        try await other.revokeAPIToken(id: token.id)
        #expect(try served.credentials.apiToken(text) == nil)
        let session = try await served.session()
        #expect(try await served.failure(session.text, in: other) == nil)
        try await served.credentials.endSession(id: session.session.id)
        #expect(try await served.failure(session.text, in: other) == .revoked)
        try await other.removeContainer("b")
        #expect(try !served.credentials.hasContainer("b"))
    }

    @Test func `tokens are still valid when the store is opened again`() async throws {
        let served = try await Served()
        let token = try await served.session()
        let capability = served.credentials.signedText(Data("x".utf8), for: "upload", until: .max)
        let again = try served.opening()
        #expect(try await served.failure(token.text, in: again) == nil)
        #expect(try again.open(capability, for: "upload") == Data("x".utf8))
    }

    @Test func `a request whose credentials are in use may come again after two seconds, and others fail`() {
        let busy = CloudError(credentials: CredentialError(.busy, "in use"))
        #expect(busy.code == .serviceUnavailable && busy.reason == "in use" && busy.retryAfter == .seconds(2))
        let damaged = CloudError(credentials: CredentialError(.storage, "damaged"))
        #expect(damaged.code == .internalError && damaged.retryAfter == nil)
    }
}
