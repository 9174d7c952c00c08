import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

/// Goal: whatever a server or the network does, the client reports it by an error of the contract, repeats no request that may
/// not be repeated, and does not disclose the token. Method: servers that answer with bytes of the test's.
@Suite(.timeLimit(.minutes(30))) struct ClientTests {
    static let secret = "c2VjcmV0LXRva2VuLTEyMw"
    private static let zone = CloudZoneID("Journal")

    private static var timeouts: HTTPTimeouts {
        var timeouts = HTTPTimeouts()
        timeouts.pause = .milliseconds(1)
        timeouts.pauseMax = .milliseconds(5)
        return timeouts
    }

    private func cloud(
        _ address: ServerAddress, timeouts: HTTPTimeouts = Self.timeouts, store: SessionMemory = SessionMemory(),
        signedIn: Bool = true
    ) throws -> HTTPCloud {
        let cloud = HTTPCloud(
            address, container: "iCloud.org.example.journal", environment: .development, session: store, timeouts: timeouts)
        if signedIn { store.keep(try CloudSession(cloud: cloud.name, userRecordName: "_anna", token: Self.secret)) }
        return cloud
    }

    private func failure<Value>(_ body: () async throws -> Value) async throws -> CloudError {
        do {
            let value = try await body()
            Issue.record("it did not fail: \(value)")
            return CloudError(.internalError, "")
        } catch {
            let failure = try #require(error as? CloudError)
            #expect(!failure.description.contains(Self.secret))
            return failure
        }
    }

    private static let request = ModifyRecordsRequest(
        zone: zone,
        operations: [RecordOperation(.create, CloudRecord(CloudRecordID("a", in: zone), type: "Destination"))], clientToken: "t")

    @Test func `a session's identifier is the beginning of its token, and other tokens have none`() throws {
        let address = try ServerAddress("http://127.0.0.1:1")
        #expect(try cloud(address, signedIn: false).sessionIdentifier == nil)
        for (count, identifier) in [(63, nil), (64, "000102030405060708090a0b0c0d0e0f"), (65, nil)] as [(UInt8, String?)] {
            let store = SessionMemory()
            let server = try cloud(address, store: store, signedIn: false)
            let token = Base64URL.text((0..<count).map { $0 })
            store.keep(try CloudSession(cloud: server.name, userRecordName: "_anna", token: token))
            #expect(try server.sessionIdentifier == identifier)
        }
        #expect(try cloud(address).sessionIdentifier == nil)
    }

    // Connections

    @Test func `an address without a server is networkUnavailable at once`() async throws {
        let port = try StubServer { _, _ in .broken }.port
        let server = try cloud(ServerAddress("http://127.0.0.1:\(port)"))
        let error = try await failure { try await server.database(.private).modify(Self.request) }
        #expect(error.code == .networkUnavailable)
        #expect(error.reason.contains("Does the server run"))
    }

    @Test func `a read is sent at most three times if the connection breaks`() async throws {
        let stub = try StubServer { _, _ in .broken }
        let database = try cloud(stub.address).database(.private)
        #expect(try await failure { try await database.zones() }.code == .networkFailure)
        #expect(stub.requests.count == 3)
    }

    @Test func `a read succeeds if its second try does`() async throws {
        let stub = try StubServer { _, number in number == 0 ? .broken : .json(#"{"zones":[{"zoneID":{"zoneName":"Journal"}}]}"#)
        }
        #expect(try await cloud(stub.address).database(.private).zones() == [Self.zone])
    }

    @Test func `a change is sent once, even if it fails`() async throws {
        let stub = try StubServer { _, number in number % 2 == 0 ? .broken : .page("503 Service Unavailable") }
        let database = try cloud(stub.address).database(.private)
        #expect(try await failure { try await database.modify(Self.request) }.code == .networkFailure)
        #expect(stub.requests.count == 1)
        #expect(try await failure { try await database.acceptLink("x") }.code == .serviceUnavailable)
        #expect(stub.requests.count == 2)
        let share = CloudRecordID("s", in: Self.zone)
        #expect(try await failure { try await database.changeShare(share, [.setTitle("A")]) }.code == .networkFailure)
        #expect(stub.requests.count == 3)
    }

    @Test func `a silent server is given up`() async throws {
        let stub = try StubServer { _, _ in .silence }
        var timeouts = Self.timeouts
        (timeouts.looking, timeouts.changing) = (.milliseconds(50), .milliseconds(50))
        let database = try cloud(stub.address, timeouts: timeouts).database(.private)
        #expect(try await failure { try await database.zones() }.code == .networkFailure)
        #expect(try await failure { try await database.modify(Self.request) }.code == .networkFailure)
        // Another try would take as long.
        #expect(stub.requests.count <= 2)
    }

    @Test func `an answer that comes too slowly is given up`() async throws {
        let start = Array("HTTP/1.1 200 OK\r\nContent-Length: 60000000\r\n\r\n".utf8)
        let stub = try StubServer { _, _ in .endless(start: start, [0x20]) }
        var timeouts = Self.timeouts
        timeouts.looking = .milliseconds(50)
        let database = try cloud(stub.address, timeouts: timeouts).database(.private)
        #expect(try await failure { try await database.zones() }.code == .networkFailure)
    }

    @Test func `a request that is cancelled fails`() async throws {
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let stub = try StubServer { _, _ in
            arrival.yield()
            return .silence
        }
        let database = try cloud(stub.address).database(.private)
        let asking = Task { try await database.zones() }
        for await _ in arrivals { break }
        asking.cancel()
        #expect(try await failure { try await asking.value }.code == .networkFailure)
    }

    // Answers

    @Test(arguments: [
        "", "no JSON", "[]", "{}", #"{"zones":3}"#, #"{"zones":[{}]}"#, #"{"zones":[],"zones":[]}"#, "\u{0}",
        String(repeating: "[", count: 100_000),
    ])
    func `a reply that breaks the protocol is reported with its place`(text: String) async throws {
        let stub = try StubServer { _, _ in .json(text) }
        let error = try await failure { try await cloud(stub.address).database(.private).zones() }
        #expect(error.code == .internalError)
        #expect(error.reason.contains("/database/1/iCloud.org.example.journal/development/private/zones/list"))
    }

    @Test func `an answer that is not HTTP is reported`() async throws {
        let stub = try StubServer { _, _ in .last(Array("SSH-2.0-OpenSSH_9.9\r\n\r\n".utf8)) }
        let error = try await failure { try await cloud(stub.address).database(.private).modify(Self.request) }
        #expect(error.code == .internalError || error.code == .networkFailure)
    }

    @Test func `an answer with fewer outcomes than operations is refused`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"records":[]}"#) }
        let error = try await failure { try await cloud(stub.address).database(.private).modify(Self.request) }
        #expect(error.code == .internalError)
    }

    @Test func `an endless answer is given up, with a length, in chunks or compressed`() async throws {
        var timeouts = Self.timeouts
        timeouts.bytesPerAnswer = 1 << 20
        let piece = Array(("10000\r\n" + String(repeating: " ", count: 1 << 16) + "\r\n").utf8)
        let replies: [StubServer.Reply] = [
            .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{".utf8)),
            .endless(start: Array("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".utf8), piece),
            .endless(start: Array("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n".utf8) + Self.bombHead, Self.bombPiece),
        ]
        let stub = try StubServer { _, number in replies[number] }
        let database = try cloud(stub.address, timeouts: timeouts).database(.private)
        for number in replies.indices {
            let error = try await failure { try await database.zones() }
            #expect(error.code == .internalError, "\(number): \(error)")
        }
        #expect(stub.requests.count == replies.count)
    }

    @Test func `the client asks for fewer records if an answer is too large`() async throws {
        var timeouts = Self.timeouts
        timeouts.bytesPerAnswer = 1 << 20
        let stub = try StubServer { request, _ in
            if request.body.contains(#""resultsLimit":3"#) {
                return .json(#"{"zones":[{"zoneID":{"zoneName":"Journal"},"syncToken":"t","moreComing":true,"records":[]}]}"#)
            }
            return .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n{".utf8))
        }
        let database = try cloud(stub.address, timeouts: timeouts).database(.private)
        let page = try await database.zoneChanges(Self.zone, since: nil, limit: nil, desiredKeys: nil)
        #expect(page == ZoneChanges(changes: [], token: CloudToken(rawValue: "t"), moreComing: true))
        #expect(stub.requests.count == 3)
        // A single record is too large.
        let query = CloudQuery(recordType: "Destination")
        let error = try await failure {
            try await database.query(query, in: Self.zone, limit: 2, desiredKeys: nil, continuation: nil)
        }
        #expect(error.code == .limitExceeded)
        #expect(stub.requests.count == 5)
    }

    // Records in answers

    @Test(arguments: [
        #"[{"recordName":"b","recordType":"Destination"},{"recordName":"a","recordType":"Destination"}]"#,
        #"[{"recordName":"a","recordType":"D","zoneID":{"zoneName":"Other"}},{"recordName":"b","recordType":"D"}]"#,
        #"[{"recordName":"a","recordType":"D"},{"recordName":"x","serverErrorCode":"NOT_FOUND"}]"#,
    ])
    func `records that were not requested are refused`(records: String) async throws {
        let stub = try StubServer { _, _ in .json(#"{"records":\#(records)}"#) }
        let database = try cloud(stub.address).database(.private)
        let found = try await failure { try await database.lookup(["a", "b"], in: Self.zone, desiredKeys: nil) }
        #expect(found.code == .internalError && found.reason.contains("not asked for"))
        var request = Self.request
        request.operations.append(
            RecordOperation(.create, CloudRecord(CloudRecordID("b", in: Self.zone), type: "Destination")))
        let saved = try await failure { try await database.modify(request) }
        #expect(saved.code == .internalError && saved.reason.contains("not asked for"))
    }

    @Test(arguments: [
        #"{"records":[{"recordName":"a","deleted":true},{"recordName":"a","recordType":"D"}]}"#,
        #"{"records":[{"recordName":"a","recordType":"D","zoneID":{"zoneName":"Other"}}]}"#,
        #"{"zoneID":{"zoneName":"Other"},"records":[]}"#,
    ])
    func `a page of changes with a record twice, or of another zone, is refused`(page: String) async throws {
        let text = #"{"zones":[{"syncToken":"t",\#(page.dropFirst())]}"#
        let stub = try StubServer { _, _ in .json(text) }
        let database = try cloud(stub.address).database(.private)
        let error = try await failure { try await database.zoneChanges(Self.zone, since: nil, limit: nil, desiredKeys: nil) }
        #expect(error.code == .internalError && error.reason.contains("not asked for"))
    }

    @Test func `records that a look-up leaves out are requested again, as long as some are returned`() async throws {
        let later = #""serverErrorCode":"TRY_AGAIN_LATER","tidemark":{"code":"serviceUnavailable"}"#
        let stub = try StubServer { _, number in
            switch number {
            case 0:
                .json(
                    #"{"records":[{"recordName":"a","recordType":"D"},{"recordName":"b",\#(later)},{"recordName":"c",\#(later)}]}"#
                )
            case 1: .json(#"{"records":[{"recordName":"b","recordType":"D"},{"recordName":"c",\#(later)}]}"#)
            default: .json(#"{"records":[{"recordName":"c",\#(later)}]}"#)
            }
        }
        let database = try cloud(stub.address).database(.private)
        let found = try await database.lookup(["a", "b", "c"], in: Self.zone, desiredKeys: nil)
        #expect(found.prefix(2).map { try? $0.get().id.recordName } == ["a", "b"])
        #expect(throws: CloudError(.serviceUnavailable, "")) { try found[2].get() }
        #expect(stub.requests.count == 3)
        #expect(stub.requests[1].body.contains(#""records":[{"recordName":"b"},{"recordName":"c"}]"#))
    }

    @Test func `an item's error is short, and has no control characters of terminals`() async throws {
        let reason = "a\\u001b[2J" + String(repeating: "b", count: 5000)
        let stub = try StubServer { _, _ in
            .json(#"{"records":[{"recordName":"a","serverErrorCode":"BAD_REQUEST","reason":"\#(reason)"}]}"#)
        }
        let outcomes = try await cloud(stub.address).database(.private).modify(Self.request)
        guard case .failed(let error) = try #require(outcomes.first) else {
            Issue.record("it did not fail")
            return
        }
        #expect(error.reason == "a [2J" + String(repeating: "b", count: 995))
    }

    /// The beginning of a stream of gzip, and stored blocks of it.
    private static let bombHead: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]
    private static let bombPiece: [UInt8] = [0, 0xff, 0x7f, 0, 0x80] + [UInt8](repeating: 0x20, count: 0x7fff)

    @Test(arguments: [
        ("502 Bad Gateway", CloudError.Code.serviceUnavailable), ("504 Gateway Timeout", .serviceUnavailable),
        ("413 Content Too Large", .limitExceeded), ("429 Too Many Requests", .requestRateLimited),
        ("404 Not Found", .internalError),
        ("403 Forbidden", .serviceUnavailable), ("401 Unauthorized", .serviceUnavailable),
        ("407 Proxy Authentication Required", .serviceUnavailable), ("421 Misdirected Request", .serviceUnavailable),
        ("500 Internal Server Error", .internalError),
        ("302 Found", .internalError), ("418 I'm a teapot", .internalError),
    ])
    func `an HTML page of a proxy is understood by its status`(status: String, code: CloudError.Code) async throws {
        let stub = try StubServer { _, _ in .page(status, headers: ["Location: http://127.0.0.1:1/", "Retry-After: 7"]) }
        let error = try await failure { try await cloud(stub.address).database(.private).zones() }
        #expect(error.code == code)
        if code == .serviceUnavailable || code == .requestRateLimited { #expect(error.retryAfter == .seconds(7)) }
        #expect(stub.requests.count == 1)
    }

    @Test func `a proxy whose server is away for a moment is asked again`() async throws {
        let stub = try StubServer { _, number in number < 2 ? .page("502 Bad Gateway") : .json(#"{"zones":[]}"#) }
        #expect(try await cloud(stub.address).database(.private).zones() == [])
        #expect(stub.requests.count == 3)
    }

    @Test func `a redirection is not followed, and the token is sent nowhere else`() async throws {
        let other = try StubServer { _, _ in .json(#"{"zones":[]}"#) }
        let place = "http://127.0.0.1:\(other.port)/"
        let stub = try StubServer { _, _ in .page("307 Temporary Redirect", headers: ["Location: \(place)"]) }
        #expect(try await failure { try await cloud(stub.address).database(.private).zones() }.code == .internalError)
        #expect(other.requests.isEmpty)
    }

    @Test func `an error of the server is shown as it is, without control characters of terminals`() async throws {
        let stub = try StubServer { _, _ in
            .json(
                ##"{"uuid":"1","serverErrorCode":"TRY_AGAIN_LATER","reason":"busy\u001b[2J","retryAfter":3,"tidemark":{"code":"zoneBusy"}}"##,
                status: "503 Service Unavailable")
        }
        let error = try await failure { try await cloud(stub.address).database(.private).zones() }
        #expect(error.code == .zoneBusy)
        #expect(error.retryAfter == .seconds(3))
        #expect(error.reason == "busy [2J")
        #expect(stub.requests.count == 1)
    }

    @Test func `connections are used again, and answers may be compressed`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"zones":[]}"#) }
        let database = try cloud(stub.address).database(.shared)
        for _ in 0..<3 { _ = try await database.zones() }
        #expect(
            stub.requests.map(\.line)
                == Array(repeating: "POST /database/1/iCloud.org.example.journal/development/shared/zones/list", count: 3))
        #expect(stub.requests.allSatisfy { $0.header("Accept-Encoding") == "gzip" && $0.header("X-Tidemark-Extensions") == "1" })
        #expect(stub.requests.allSatisfy { $0.header("Authorization") == "Bearer \(Self.secret)" })
    }

    // Assets

    @Test func `a wrong piece of a content is refused`() async throws {
        let asset = CloudAsset(digest: String(repeating: "a", count: 64), size: 100)
        let replies: [String] = [
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-13/100\r\nContent-Length: 4\r\n\r\nabcd",
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 11-14/100\r\nContent-Length: 4\r\n\r\nabcd",
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 10-19/100\r\nContent-Length: 10\r\n\r\nabcdefghij",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd",
            "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 2\r\n\r\n{}",
        ]
        let stub = try StubServer { _, number in .bytes(Array(replies[number].utf8)) }
        let database = try cloud(stub.address).database(.private)
        func piece() async throws -> Data { try await database.download(asset, in: Self.zone, from: 10, count: 4) }
        #expect(try await piece() == Data("abcd".utf8))
        for _ in 0..<3 { #expect(try await failure(piece).code == .internalError) }
        #expect(try await piece() == Data())
        #expect(stub.requests[0].header("Range") == "bytes=10-13")
        #expect(
            stub.requests[0].line.hasSuffix(
                "/private/assets/\(asset.digest)-100?zone=Journal&owner=__defaultOwner__"))
    }

    @Test func `an invalid digest makes no path`() async throws {
        let stub = try StubServer { _, _ in .json("{}") }
        let database = try cloud(stub.address).database(.private)
        let asset = CloudAsset(digest: "../../etc/passwd", size: 1)
        #expect(
            try await failure { try await database.upload(Data([1]), of: asset, at: 0, in: Self.zone) }.code == .invalidArguments)
        #expect(
            try await failure { try await database.download(asset, in: Self.zone, from: 0, count: 1) }.code == .assetNotAvailable)
        #expect(stub.requests.isEmpty)
    }

    // Sessions

    @Test func `signing in stores a session, and signing out ends it here and at the server`() async throws {
        let stub = try StubServer { _, number in
            number == 0 ? .json(#"{"token":"abc","expires":1,"userRecordName":"_anna"}"#) : .json("{}")
        }
        let store = SessionMemory()
        let cloud = try cloud(stub.address, store: store, signedIn: false)
        let device = "Anna's phone"
        #expect(
            try await cloud.signIn(email: "anna@example.org", password: "pass word", device: device, system: "macOS 15.1")
                == "_anna")
        #expect(
            stub.requests[0].body
                == #"{"email":"anna@example.org","password":"pass word","device":"Anna's phone","system":"macOS 15.1"}"#)
        #expect(stub.requests[0].header("Authorization") == nil)
        #expect(store.session()?.token == "abc")
        try await cloud.signOut()
        #expect(stub.requests[1].line == "POST /tidemark/1/iCloud.org.example.journal/development/session/end")
        #expect(stub.requests[1].header("Authorization") == "Bearer abc")
        #expect(store.session() == nil)
        #expect(try cloud.userRecordName == nil)
    }

    @Test func `a device is named after the machine if it has no other name, and has none if the machine has none`() async throws
    {
        let stub = try StubServer { _, _ in .json(#"{"token":"abc","expires":1,"userRecordName":"_anna"}"#) }
        let cloud = try cloud(stub.address, signedIn: false)
        try await cloud.signIn(email: "anna@example.org", password: "a")
        try await cloud.signIn(email: "anna@example.org", password: "a", device: "", system: "")
        let (name, system) = (HTTPCloud.deviceName, HTTPCloud.systemName)
        #expect(!name.isEmpty && !name.contains("\0") && !system.isEmpty)
        #expect(stub.requests[0].body.hasSuffix(##""password":"a","device":"\##(name)","system":"\##(system)"}"##))
        #expect(stub.requests[1].body.hasSuffix(#""password":"a"}"#))
    }

    @Test func `a container that is not served is recognised by a member of the answer beside the reason`() async throws {
        let stub = try StubServer { _, number in
            let extra = number == 0 ? #","containerIsServed":false"# : ""
            let reason = number == 1 ? "bad credentials: the API token, the session or the signature" : "no"
            return .json(
                #"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"\#(reason)","tidemark":{"code":"notAuthenticated"\#(extra)}}"#,
                status: "401 Unauthorized")
        }
        let database = try cloud(stub.address).database(.private)
        #expect(try await failure { try await database.account() }.reason.hasSuffix(": no"))
        #expect(
            try await failure { try await database.account() }.reason.hasSuffix(
                """
                has ended: perhaps it was ended on another device or by the server's operator, the password was changed, the account \
                was deleted, or nobody used it for half a year; sign in again
                """))
        // A longer reason is shown unchanged.
        #expect(try await failure { try await database.account() }.reason.hasSuffix("has ended: no; sign in again"))
    }

    @Test func `a session is removed here though the server can't be reached`() async throws {
        let stub = try StubServer { _, _ in .broken }
        let store = SessionMemory()
        let cloud = try cloud(stub.address, store: store)
        #expect(try await failure { try await cloud.signOut() }.code == .networkFailure)
        #expect(store.session() == nil)
    }

    @Test func `a token that the server renews is used and stored`() async throws {
        let stub = try StubServer { _, number in
            .json(#"{"zones":[]}"#, headers: number == 0 ? ["X-Apple-CloudKit-Web-Auth-Token: next"] : [])
        }
        let store = SessionMemory()
        let database = try cloud(stub.address, store: store).database(.private)
        for _ in 0..<2 { _ = try await database.zones() }
        #expect(stub.requests.map { $0.header("Authorization") } == ["Bearer \(Self.secret)", "Bearer next"])
        #expect(store.session()?.token == "next")
    }

    @Test func `a renewed token does not sign in an account that has signed out meanwhile`() async throws {
        let store = SessionMemory()
        let stub = try StubServer { _, _ in
            store.remove()
            return .json(#"{"zones":[]}"#, headers: ["X-Apple-CloudKit-Web-Auth-Token: next"])
        }
        _ = try await cloud(stub.address, store: store).database(.private).zones()
        #expect(store.session() == nil)
    }

    @Test func `a session that another process has renewed is found when the old one is refused`() async throws {
        let store = SessionMemory()
        let stub = try StubServer { request, _ in
            if request.header("Authorization") == "Bearer other" {
                return .json(#"{"records":[{"recordName":"a","deleted":true}]}"#)
            }
            return .json(#"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"ended"}"#, status: "401 Unauthorized")
        }
        let cloud = try cloud(stub.address, store: store)
        #expect(try cloud.userRecordName == "_anna")
        store.keep(try CloudSession(cloud: cloud.name, userRecordName: "_anna", token: "other"))
        // The server had not admitted it, so nothing was done: even a change is sent again.
        #expect(try await cloud.database(.private).modify(Self.request).count == 1)
        #expect(stub.requests.count == 2)
    }

    @Test func `the session of another account is not used`() async throws {
        let store = SessionMemory()
        let stub = try StubServer { _, _ in
            .json(#"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"ended"}"#, status: "401 Unauthorized")
        }
        let cloud = try cloud(stub.address, store: store)
        #expect(try cloud.userRecordName == "_anna")
        store.keep(try CloudSession(cloud: cloud.name, userRecordName: "_ben", token: "other"))
        #expect(try await failure { try await cloud.database(.private).modify(Self.request) }.code == .notAuthenticated)
        #expect(stub.requests.count == 1)
        let told = try await failure { try await cloud.database(.private).account() }
        #expect(told.code == .notAuthenticated)
        #expect(told.reason.contains("has ended: ended; sign in again"))
    }

    @Test func `a sign-in page of a network does not end a session`() async throws {
        let stub = try StubServer { _, number in
            number % 2 == 0
                ? .page("401 Unauthorized", headers: ["Retry-After: 0"]) : .page("403 Forbidden", headers: ["Retry-After: 0"])
        }
        let store = SessionMemory()
        let database = try cloud(stub.address, store: store).database(.private)
        for _ in 0..<2 { #expect(try await failure { try await database.account() }.code == .serviceUnavailable) }
        #expect(store.session()?.token == Self.secret)
        // An error of the server itself does.
        let server = try StubServer { _, _ in
            .json(#"{"serverErrorCode":"ACCESS_DENIED","reason":"no"}"#, status: "403 Forbidden")
        }
        let denied = try await failure { try await cloud(server.address).database(.private).zones() }
        #expect(denied.code == .permissionFailure)
    }

    @Test func `another account can't sign in while databases of an account are in use`() async throws {
        let stub = try StubServer { request, _ in
            guard request.line.hasSuffix("/session") else { return .json("{}") }
            let name = request.body.contains("ben@") ? "_ben" : "_anna"
            return .json(##"{"token":"token\##(name)","expires":1,"userRecordName":"\##(name)"}"##)
        }
        let store = SessionMemory()
        let cloud = try cloud(stub.address, store: store, signedIn: false)
        let database = cloud.database(.private)
        try await cloud.signIn(email: "anna@example.org", password: "a")
        let refused = try await failure { try await cloud.signIn(email: "ben@example.org", password: "b") }
        #expect(refused.code == .invalidArguments)
        #expect(refused.reason.contains("make another HTTPCloud"))
        // The new session is ended, and the other one is still used.
        #expect(stub.requests.last?.line.hasSuffix("/session/end") == true)
        #expect(stub.requests.last?.header("Authorization") == "Bearer token_ben")
        #expect(store.session()?.token == "token_anna")
        #expect(try cloud.userRecordName == "_anna")
        // Nor after signing out: what was begun for one account is not sent for another.
        try await cloud.signOut()
        _ = try await failure { try await cloud.signIn(email: "ben@example.org", password: "b") }
        #expect(store.session() == nil)
        try await cloud.signIn(email: "anna@example.org", password: "a")
        #expect(store.session()?.userRecordName == "_anna")
        _ = database
    }

    /// A session store that calls a hook before it stores the first session.
    private final class HookedSessions: SessionStore {
        let sessions = SessionMemory()
        let hook = LockedValue<(@Sendable () -> Void)?>(nil)

        func session() -> CloudSession? { sessions.session() }
        func keep(_ session: CloudSession) {
            hook.withLock { $0.take() }?()
            sessions.keep(session)
        }
        func replace(_ old: CloudSession, by new: CloudSession) { sessions.replace(old, by: new) }
        func remove() { sessions.remove() }
        func remove(_ session: CloudSession) { sessions.remove(session) }
    }

    @Test(arguments: [false, true])
    func `a sign-in after another account's ends its own session at the server, and leaves the other one`(
        answers: Bool
    ) async throws {
        let stub = try StubServer { request, _ in
            guard request.line.hasSuffix("/session") else { return answers ? .json("{}") : .broken }
            return .json(#"{"token":"token_ben","expires":1,"userRecordName":"_ben"}"#)
        }
        let store = HookedSessions()
        let cloud = HTTPCloud(
            try stub.address, container: "iCloud.org.example.journal", environment: .development, session: store,
            timeouts: Self.timeouts)
        let (database, anna) = (
            cloud.database(.private), try CloudSession(cloud: cloud.name, userRecordName: "_anna", token: Self.secret)
        )
        // Anna signs in while Ben's sign-in is under way.
        store.hook.withLock {
            $0 = {
                store.sessions.keep(anna)
                _ = try? cloud.userRecordName
            }
        }
        let refused = try await failure { try await cloud.signIn(email: "ben@example.org", password: "b") }
        #expect(refused.code == .invalidArguments && refused.reason.contains("another account has signed in here meanwhile"))
        #expect(stub.requests.count == 2 && stub.requests.last?.line.hasSuffix("/session/end") == true)
        #expect(stub.requests.last?.header("Authorization") == "Bearer token_ben")
        #expect(try cloud.userRecordName == "_anna")
        #expect(store.session() == anna)
        _ = database
    }

    @Test func `signing out leaves a session alone that was begun meanwhile`() async throws {
        let store = SessionMemory()
        let made = LockedValue<CloudSession?>(nil)
        let stub = try StubServer { _, _ in
            if let new = made.withLock({ $0 }) { store.keep(new) }
            return .json("{}")
        }
        let cloud = try cloud(stub.address, store: store)
        let new = try CloudSession(cloud: cloud.name, userRecordName: "_ben", token: "new")
        made.withLock { $0 = new }
        try await cloud.signOut()
        #expect(store.session() == new)
    }

    @Test(arguments: ["", "a\nb", String(repeating: "a", count: 256)])
    func `an invalid account name is not stored`(name: String) async throws {
        let text = name.replacingOccurrences(of: "\n", with: "\\n")
        let stub = try StubServer { _, _ in .json(##"{"token":"abc","expires":1,"userRecordName":"\##(text)"}"##) }
        let store = SessionMemory()
        let cloud = try cloud(stub.address, store: store, signedIn: false)
        #expect(try await failure { try await cloud.signIn(email: "a@example.org", password: "a") }.code == .internalError)
        #expect(store.session() == nil)
    }

    @Test func `a session is not sent to another server, nor for another container`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"zones":[]}"#) }
        let store = SessionMemory(
            try CloudSession(
                cloud: "https://sync.example.org iCloud.org.example.journal development", userRecordName: "_anna",
                token: Self.secret))
        _ = try await cloud(stub.address, store: store, signedIn: false).database(.private).zones()
        #expect(stub.requests.count == 1)
        #expect(stub.requests[0].header("Authorization") == nil)
    }

    @Test func `the description of a session has no token`() throws {
        let session = try CloudSession(
            cloud: "https://sync.example.org a development", userRecordName: "_anna", token: Self.secret)
        var dumped = ""
        dump(session, to: &dumped)
        for text in ["\(session)", String(reflecting: session), dumped] { #expect(!text.contains(Self.secret)) }
        for token in ["", "a b", "a\r\nHost: x", "ä", String(repeating: "a", count: 5000)] {
            #expect(throws: CloudError.self) { try CloudSession(cloud: "", userRecordName: "", token: token) }
        }
    }

    // Notifications

    @Test func `each change is notified once, and once after the connection was lost`() async throws {
        let stub = try StubServer { request, number in
            switch number {
            case 0: .json(#"{"cursor":"a&b","changed":false}"#)
            case 1: .json(#"{"cursor":"c","changed":false}"#)
            case 2: .json(#"{"cursor":"d","changed":true}"#)
            case 3: .broken
            case 4: .page("502 Bad Gateway")
            case 5: .json(#"{"cursor":"d","changed":false}"#)
            default: .silence
            }
        }
        var news = try await cloud(stub.address).database(.private).notifications().makeAsyncIterator()
        await news.next()
        #expect(stub.requests.count >= 3)
        await news.next()
        #expect(stub.requests.count >= 6)
        let path = "GET /tidemark/1/iCloud.org.example.journal/development/private/notifications"
        #expect(stub.requests.prefix(6).map(\.line) == [path] + ["a%26b", "c", "d", "d", "d"].map { "\(path)?cursor=\($0)" })
    }

    @Test func `a client whose waits end at once again and again slows down`() async throws {
        let pauses = LockedValue<[Duration]>([])
        var timeouts = Self.timeouts
        // Even on a slow machine this counts as at once.
        timeouts.atOnce = .seconds(3600)
        timeouts.wait = { time in pauses.withLock { $0.append(time) } }
        // The first request finds out where to begin; then eight answers come at once.
        let stub = try StubServer { _, number in
            number < 9
                ? .json(#"{"cursor":"c","changed":false}"#) : number == 9 ? .json(#"{"cursor":"d","changed":true}"#) : .silence
        }
        var news = try await cloud(stub.address, timeouts: timeouts).database(.private).notifications().makeAsyncIterator()
        await news.next()
        let before = pauses.withLock { $0 }
        #expect(before.count >= 4)
        #expect(before.allSatisfy { $0 == timeouts.pollPause })
    }

    @Test func `a listener without permission is told, also after other failures`() async throws {
        let stub = try StubServer { _, number in
            switch number {
            case 0: .json(#"{"cursor":"c","changed":false}"#)
            case 1: .broken
            default: .json(#"{"serverErrorCode":"AUTHENTICATION_FAILED","reason":"no"}"#, status: "401 Unauthorized")
            }
        }
        var news = try await cloud(stub.address).database(.private).notifications().makeAsyncIterator()
        await news.next()
        #expect(stub.requests.count >= 3)
    }

    @Test func `a listener without permission is told at once`() async throws {
        let stub = try StubServer { _, _ in
            .json(#"{"serverErrorCode":"AUTHENTICATION_REQUIRED","reason":"no"}"#, status: "421 Misdirected Request")
        }
        let database = try cloud(stub.address).database(.private)
        #expect(try await failure { try await database.notifications() }.code == .notAuthenticated)
    }

    @Test func `invalid numbers fail for their record only, or for all of an atomic request`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"records":[{"recordName":"a","deleted":true}]}"#) }
        let database = try cloud(stub.address).database(.private)
        var request = Self.request
        let odd = CloudRecord(CloudRecordID("b", in: Self.zone), type: "Destination", fields: ["height": .double(.nan)])
        request.operations.insert(RecordOperation(.create, odd), at: 0)
        let invalid = RecordOutcome.failed(CloudError(.invalidArguments, ""))
        #expect(try await database.modify(request) == [invalid, .deleted(CloudRecordID("a", in: Self.zone))])
        request.isAtomic = true
        #expect(try await database.modify(request) == [invalid, .failed(CloudError(.batchRequestFailed, ""))])
        #expect(stub.requests.count == 1)
    }
}
