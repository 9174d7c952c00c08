import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkSQLite
import TidemarkStore
import TidemarkSync

/// Goal: a sign-in beside a process that synchronises mends what that process waits for, and changes nothing behind its back; an
/// answer that is not from a cloud ends every command in the same way. Method: the tool as a process, a synchronisation in the
/// test's own, and servers that answer what the test wants.
@Suite(.timeLimit(.minutes(30))) struct SignInBesideTests {
    private let scratch: Scratch
    private let tool: Tool
    private static let password = "kurz vor Tromsø"

    init() throws {
        scratch = try Scratch()
        tool = try Tool()
    }

    private var container: URL { scratch["anna.tidemark"] }

    private func signIn(to server: ServerAddress, _ more: [String] = [], status: Int32 = 0) async throws -> Tool.Result {
        let input = try scratch.write(Self.password + "\n", to: "password")
        let words = [
            "account", "sign-in", container.path, "--server", server.description, "--email", "anna@example.org",
            "--password-stdin",
        ]
        let result = try await tool.run(words + more, input: input)
        #expect(result.status == status, "\(result.output)\(result.errors)")
        return result
    }

    @Test
    func `a container that signs in again sends its records, though the cloud has deleted its copies for good`() async throws {
        let served = try await ServedCloudSubject.started()
        try await served.access.setPassword(Self.password, of: try #require(try await served.fixture.id("anna@example.org")))
        let place = ["--container", FaultyCloudFixture.container]
        _ = try await signIn(to: served.address, place)
        let directory = try ContainerDirectory(openingAt: container)
        let sync = try ContainerSync(container: directory, databases: try await served.cloud("anna@example.org").databases)
        try await RecordStore(container: directory).updateSyncState { $0.isPurged = true }
        #expect(try await sync.sync().failure?.reason.contains("Sign in again to start from the records here") == true)
        #expect(try await signIn(to: served.address, place).output.contains("signed in again as anna@example.org"))
        #expect(try await sync.sync().failure == nil)
        sync.close()
    }

    @Test func `a new sign-in sends the token of the device, also beside a process that synchronises`() async throws {
        let stub = try StubServer { request, number in
            request.line.hasSuffix("/session")
                ? .json(##"{"token":"of-anna","expires":1,"userRecordName":"_anna","deviceToken":"shown\##(number)"}"##)
                : .json(#"{"status":"available","userRecordName":"_anna"}"#)
        }
        func shown() throws -> [String?] {
            try stub.requests.filter { $0.line.hasSuffix("/session") }.map { request in
                let body = try #require(try JSONSerialization.jsonObject(with: Data(request.body.utf8)) as? [String: Any])
                return body["deviceToken"] as? String
            }
        }
        _ = try await signIn(to: stub.address)
        _ = try await tool.run(["account", "sign-out", container.path])
        let second = stub.requests.count
        _ = try await signIn(to: stub.address)
        #expect(try shown() == [nil, "shown0"])
        let lock = try SyncLock(ContainerDirectory(openingAt: container))
        let third = stub.requests.count
        _ = try await signIn(to: stub.address)
        _ = try await signIn(to: stub.address)
        lock.release()
        #expect(try shown() == [nil, "shown0", "shown\(second)", "shown\(third)"])
    }

    @Test func `a sign-in does not overwrite a session that another account began while the password was typed`() async throws {
        let arrival = LockedValue<(@Sendable () -> Void)?>(nil)
        let stub = try StubServer { request, _ in
            if request.line.hasSuffix("/session") {
                arrival.withLock { $0 }?()
                return .json(#"{"token":"of-anna","expires":1,"userRecordName":"_anna"}"#)
            }
            return .json(#"{"status":"available","userRecordName":"_anna"}"#)
        }
        _ = try await signIn(to: stub.address)
        let directory = try ContainerDirectory(openingAt: container)
        let (store, file) = (try RecordStore(container: directory), SessionFile(at: directory.session))
        let before = try #require(try file.session())
        let bens = try CloudSession(cloud: before.cloud, userRecordName: "_ben", token: "of-ben")
        // Ben's account synchronises now.
        let lock = try SyncLock(directory)
        arrival.withLock {
            $0 = {
                let isDone = DispatchSemaphore(value: 0)
                Task {
                    defer { isDone.signal() }
                    do {
                        try await store.updateAccountSettings { settings in
                            settings.email = "ben@example.org"
                            settings.userRecordName = "_ben"
                        }
                        try file.keep(bens)
                    } catch {
                        Issue.record(error)
                    }
                }
                isDone.wait()
            }
        }
        let refused = try await signIn(to: stub.address, status: 75)
        #expect(refused.errors.contains("end that before another account"))
        #expect(try file.session() == bens)
        #expect(try StoreReader(container: directory).accountSettings().email == "ben@example.org")
        // The session that was begun for the refused sign-in is ended, and Ben's is not.
        let ended = stub.requests.filter { $0.line.hasSuffix("/session/end") }
        #expect(ended.map { $0.header("Authorization") } == ["Bearer of-anna"])
        lock.release()
    }

    @Test func `every command exits with the same code if the answer is not from a cloud`() async throws {
        let isGone = LockedValue(false)
        let stub = try StubServer { request, _ in
            if isGone.withLock({ $0 }) { return .page("404 Not Found") }
            return request.line.hasSuffix("/session")
                ? .json(#"{"token":"of-anna","expires":1,"userRecordName":"_anna"}"#)
                : .json(#"{"status":"available","userRecordName":"_anna"}"#)
        }
        _ = try await signIn(to: stub.address)
        isGone.withLock { $0 = true }
        for words in [["sync", container.path, "--patience", "0"], ["account", "status", container.path]] {
            let result = try await tool.run(words)
            #expect(result.status == 69, "\(words): \(result.output)\(result.errors)")
            #expect((result.output + result.errors).contains("there is no cloud that speaks with this version"))
        }
    }
}
