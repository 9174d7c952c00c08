import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

@testable import TidemarkIdentity
@testable import TidemarkServer

/// Goal: a device on which an account was signed in is known again at any address, and shows its token only to the server that
/// issued it. Method: a real server whose only hasher is blocked while strangers come from many networks, and a proxy of the
/// test's own, which sets the address of the client.
@Suite(.timeLimit(.minutes(30))) struct KnownDeviceTests {
    private final class Place: Sendable {
        private let address: LockedValue<String>
        init(_ address: String) { self.address = LockedValue(address) }
        var now: String {
            get { address.withLock { $0 } }
            set { address.withLock { $0 = newValue } }
        }
    }

    private final class Answer: Sendable {
        let reply = LockedValue(StubServer.Reply.broken)
    }

    private static let path = "/tidemark/1/\(StubbedServer.container)/development/session"

    /// A proxy before the server that sets the address of its client.
    private func proxy(to server: StubbedServer, from place: Place) throws -> StubServer {
        try StubServer { request, _ in
            let (answer, isDone) = (Answer(), DispatchSemaphore(value: 0))
            Task {
                defer { isDone.signal() }
                var headers: HTTPHeaders = ["X-Forwarded-For": place.now, "Content-Type": "application/json"]
                if let authorization = request.header("Authorization") {
                    headers.add(name: "Authorization", value: authorization)
                }
                let path = String(request.line.dropFirst("POST ".count))
                guard let found = try? await server.send(.POST, path, headers: headers, body: Array(request.body.utf8)) else {
                    return
                }
                answer.reply.withLock { $0 = .json(found.text, status: "\(found.status) x") }
            }
            isDone.wait()
            return answer.reply.withLock { $0 }
        }
    }

    /// Sends attempts of strangers, each from a network of its own, and returns when the greatest number of them waits.
    private func flood(_ server: StubbedServer) async throws -> [RawConnection] {
        var connections: [RawConnection] = []
        for number in 0..<40 {
            let body = "{\"email\":\"p\(number)@example.org\",\"password\":\"wrong horse\"}"
            let connection = try await RawConnection(port: server.port)
            try await connection.write(
                """
                POST \(Self.path) HTTP/1.1\r
                Host: x\r
                X-Forwarded-For: 203.0.\(number).1\r
                Content-Type: application/json\r
                Content-Length: \(body.utf8.count)\r
                \r
                \(body)
                """)
            connections.append(connection)
        }
        #expect(try await eventually { server.access.hashers.waiting == 32 })
        return connections
    }

    @Test func `a known device at a new address has its own lane while strangers flood`() async throws {
        try await StubbedServer.with(trustsProxy: true) { server in
            let scratch = try Scratch()
            let place = Place("198.51.100.1")
            let stub = try proxy(to: server, from: place)
            let file = SessionFile(at: scratch["cloud-session"])
            let cloud = HTTPCloud(try stub.address, container: StubbedServer.container, session: file)
            try await cloud.signIn(email: "anna@example.org", password: "correct horse")
            #expect(stub.requests.last?.body.contains("deviceToken") == false)
            try await cloud.signOut()
            #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path) == ["cloud-session-device"])
            let kept = try FileManager.default.attributesOfItem(atPath: scratch["cloud-session-device"].path)
            #expect((kept[.posixPermissions] as? NSNumber)?.intValue == 0o600)

            place.now = "192.0.2.77"
            let (gate, open) = AsyncStream<Void>.makeStream()
            let (held, hold) = AsyncStream<Void>.makeStream()
            try await withThrowingTaskGroup(of: Void.self) { group in
                // The hasher is freed even after an error.
                defer { open.finish() }
                // The only hasher is blocked until all attempts have come.
                group.addTask {
                    try await server.access.hashers.withTurn(of: .own) { _ throws(CredentialError) in
                        hold.finish()
                        for await _ in gate {}
                    }
                }
                for await _ in held {}
                let connections = try await flood(server)
                // No more strangers than these may wait.
                group.addTask {
                    // As a process does that starts later.
                    let again = HTTPCloud(try stub.address, container: StubbedServer.container, session: file)
                    try await again.signIn(email: "Anna@example.org", password: "correct horse")
                }
                #expect(try await eventually { server.access.hashers.waiting == 33 })
                open.finish()
                try await group.waitForAll()
                for connection in connections { try await connection.close() }
            }
            #expect(stub.requests.last?.body.contains("\"deviceToken\":\"") == true)
            #expect(try file.session() != nil)
        }
    }

    @Test func `the token of a device is sent only to the server, container and account that it came from`() async throws {
        let answer: @Sendable (StubServer.Request, Int) -> StubServer.Reply = { _, _ in
            .json(#"{"token":"abc","expires":1,"userRecordName":"_anna","deviceToken":"shown"}"#)
        }
        let (first, second) = (try StubServer(answer), try StubServer(answer))
        let scratch = try Scratch()
        let file = SessionFile(at: scratch["cloud-session"])
        func isShown(_ stub: StubServer, _ container: String, _ email: String, _ store: any SessionStore) async throws -> Bool {
            let cloud = HTTPCloud(try stub.address, container: container, session: store)
            try await cloud.signIn(email: email, password: "a")
            return try #require(stub.requests.last).body.contains(#""deviceToken":"shown"}"#)
        }
        for store in [file, SessionMemory()] as [any SessionStore] {
            #expect(try await !isShown(first, "a", "anna@example.org", store))
            #expect(try await !isShown(second, "a", "anna@example.org", store))
            #expect(try await !isShown(first, "b", "anna@example.org", store))
            #expect(try await !isShown(first, "a", "ben@example.org", store))
            // The earlier tokens are kept all the same.
            #expect(try await isShown(first, "a", "ANNA@example.org", store))
            #expect(try await isShown(second, "a", "anna@example.org", store))
        }
        // Other users could have read or written the file.
        let kept = scratch["cloud-session-device"]
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: kept.path)
        #expect(try await !isShown(first, "a", "anna@example.org", file))
        let mode = try FileManager.default.attributesOfItem(atPath: kept.path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
        #expect(try await isShown(first, "a", "anna@example.org", file))
        // A damaged file does not prevent a sign-in.
        for text in [
            "", "{", #"{"format":9,"devices":[]}"#, #"{"format":1,"devices":[{}]}"#, String(repeating: " ", count: 20_000),
        ] {
            try Data(text.utf8).write(to: kept)
            #expect(try await !isShown(first, "a", "anna@example.org", file))
        }
        // A folder in its place does not either, though no token can be stored then.
        try FileManager.default.removeItem(at: kept)
        try FileManager.default.createDirectory(at: kept, withIntermediateDirectories: false)
        #expect(try await !isShown(first, "a", "anna@example.org", file))
    }

    @Test func `the tokens of the four newest devices are kept, and not printed`() throws {
        let memory = SessionMemory()
        for number in 0..<6 {
            memory.keep(try #require(CloudDevice(cloud: "c", email: "p\(number)@example.org", token: "token\(number)")))
        }
        memory.keep(try #require(CloudDevice(cloud: "c", email: "p5@example.org", token: "other")))
        let kept = (0..<6).map { memory.device(for: "c", email: "p\($0)@example.org")?.token }
        #expect(kept == [nil, nil, "token2", "token3", "token4", "other"])
        let device = try #require(memory.device(for: "c", email: "p5@example.org"))
        var dumped = ""
        dump(device, to: &dumped)
        for text in ["\(device)", String(reflecting: device), dumped] { #expect(!text.contains("other")) }
        for token in ["", "a b", "ä", String(repeating: "a", count: 1025)] {
            #expect(CloudDevice(cloud: "c", email: "a", token: token) == nil)
        }
    }
}
