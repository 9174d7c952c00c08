import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkIdentity
import TidemarkModel

/// Goal: a problem with a server is reported at once, with its address, the remedy and the right exit code. Method: the tool as a
/// process, a server of the test's own, and addresses without a server.
@Suite(.timeLimit(.minutes(30))) struct ServedTroubleTests {
    private let scratch: Scratch
    private let served: ServedCloudSubject
    private let tool: Tool
    private static let password = "kurz vor Bodø"

    init() async throws {
        scratch = try Scratch()
        served = try await ServedCloudSubject.started()
        tool = try Tool()
        for email in ["anna@example.org", "ben@example.org"] {
            try await served.access.setPassword(Self.password, of: try #require(try await served.fixture.id(email)))
        }
    }

    private var container: String { scratch["anna.tidemark"].path }

    @discardableResult
    private func run(_ words: String..., status: Int32 = 0) async throws -> Tool.Result {
        let result = try await tool.run(words)
        #expect(result.status == status, "\(words): \(result.output)\(result.errors)")
        return result
    }

    @discardableResult
    private func signIn(
        as email: String = "anna@example.org", _ more: [String] = ["--container", FaultyCloudFixture.container], status: Int32 = 0
    ) async throws -> Tool.Result {
        let input = try scratch.write(Self.password + "\n", to: "password")
        let words = [
            "account", "sign-in", container, "--server", served.address.description, "--email", email, "--password-stdin",
        ]
        let result = try await tool.run(words + more, input: input)
        #expect(result.status == status, "\(result.output)\(result.errors)")
        return result
    }

    @Test func `the tool tries an unreachable server again, says so beside the progress, and exits with 75`() async throws {
        // No other socket gets the port when the stub has gone.
        let port = try ReservedPort()
        var stub: StubServer? = try StubServer(at: port) { request, _ in
            request.line.hasSuffix("/session")
                ? .json(#"{"token":"abc","expires":1,"userRecordName":"_anna"}"#)
                : .json(#"{"status":"available","userRecordName":"_anna"}"#)
        }
        let address = try #require(stub).address.description
        let input = try scratch.write(Self.password + "\n", to: "password")
        let signedIn = try await tool.run(
            ["account", "sign-in", container, "--server", address, "--email", "anna@example.org", "--password-stdin"],
            input: input)
        #expect(signedIn.status == 0, "\(signedIn.errors)")
        // The stub ends with its last reference, a moment after the last connection.
        let isGone = { [weak stub] in stub == nil }
        stub = nil
        while !isGone() { await Task.yield() }
        let quiet = try await run("sync", container, "--patience", "0", "--progress", "always", status: 75)
        #expect(quiet.errors.contains("\(address) can't be reached"))
        #expect(quiet.errors.contains("Does the server run, and is the address right?"))
        #expect(!quiet.errors.contains("note:"))
        let told = try await run("sync", container, "--patience", "2", "--progress", "always", status: 75)
        #expect(told.errors.contains("note: trying for up to 2.0 s in all: \(address) can't be reached"))
        try await run("sync", container, "--dry-run", status: 75)
        try await run("account", "status", container, status: 75)
        withExtendedLifetime(port) {}
    }

    @Test func `a container without a session says so, exits with 69, and has no identity`() async throws {
        try await signIn()
        for session in try await served.access.sessions() { try await served.access.endSession(id: session.id) }
        let refused = try await run("sync", container, status: 69)
        #expect(refused.errors.contains("has ended"))
        #expect(refused.errors.contains("sign in again with 'tidemark account sign-in"))
        let status = try await run("account", "status", container, status: 69)
        #expect(status.output.contains("identity: absent"))
        #expect(status.output.contains("status:   noAccount"))
        let out = try await run("account", "sign-out", container)
        #expect(!out.output.contains(" 0 "))
    }

    @Test func `a container that is no longer served is reported as that, not as an ended session`() async throws {
        try await signIn()
        try await served.access.removeContainer(FaultyCloudFixture.container)
        let refused = try await run("sync", container, status: 69)
        #expect(refused.errors.contains("'\(FaultyCloudFixture.container)' is not served here"))
        #expect(!refused.errors.contains("sign in again"))
        let again = try await signIn(status: 77)
        #expect(again.errors.contains("--container names another"))
        #expect(!again.errors.contains("check the address and the password"))
    }

    @Test func `the account of a container can sign in again during a synchronisation, and another account can't`() async throws {
        let records = try scratch.write(#"{"id":"reine","caption":"Reine"}"# + "\n", to: "records.jsonl")
        try await run("import", records.path, "--into", container, "--type", "Destination", "--id", "id", "--plain-ids")
        try await signIn()
        try await run("sync", container)
        let watching = try tool.start(["sync", container, "--watch", "--json"])
        #expect(await watching.line()?.contains(#""type":"setup""#) == true)
        for session in try await served.access.sessions() { try await served.access.endSession(id: session.id) }
        let again = try await signIn()
        #expect(again.output.contains("signed in again as anna@example.org"))
        #expect(try await served.access.sessions().count == 1)
        let other = try await signIn(as: "ben@example.org", status: 75)
        #expect(other.errors.contains("another process synchronises"))
        #expect(try await served.access.sessions().count == 1)
        // The running synchronisation has the new session: it sends what is saved here.
        try await run("records", "set", container, "senja", "--type", "Destination", "caption=Senja")
        var lines: [String] = []
        while let line = await watching.line() {
            lines.append(line)
            if line.contains(#""type":"export""#), line.contains(#""records":1,"#) { break }
        }
        #expect(lines.last?.contains(#""succeeded":true"#) == true, "\(lines)")
        _ = await watching.kill()
    }

    @Test func `a sign-in at another cloud keeps the container's name, and says so`() async throws {
        try await run(
            "account", "sign-in", container, "--cloud", scratch["cloud"].path, "--email", "anna@example.org", "--create")
        let kept = try await signIn([], status: 77)
        #expect(kept.errors.contains("note: the container in \(served.address) is 'default', as it was in"))
        #expect(try await !signIn().errors.contains("note: the container"))
    }

    @Test func `a server's address is refused as a link to a share`() async throws {
        try await signIn()
        for words in [["accept", container, "https://sync.example.org"], ["decline", container, "\(served.address)/"]] {
            let result = try await tool.run(["share"] + words)
            #expect(result.status == 64, "\(result.errors)")
            #expect(result.errors.contains("is a server's address, and not a link to a share"))
        }
    }

    @Test func `after too many attempts the tool says how long to wait`() async throws {
        let stub = try StubServer { _, _ in
            .json(
                #"{"serverErrorCode":"THROTTLED","reason":"too many attempts to sign in","retryAfter":42}"#,
                status: "429 Too Many Requests")
        }
        let input = try scratch.write(Self.password + "\n", to: "password")
        let result = try await tool.run(
            [
                "account", "sign-in", container, "--server", "http://127.0.0.1:\(stub.port)", "--email", "anna@example.org",
                "--password-stdin",
            ], input: input)
        #expect(result.status == 75)
        #expect(result.errors.contains("too many attempts to sign in; try again in 42 s"))
    }
}
