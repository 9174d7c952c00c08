import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel
import TidemarkTesting

/// Goal: answers about shares are checked against the request, values of newer servers are kept as far as that is safe, and large
/// requests are compressed. Method: servers that answer with bytes of the test's.
@Suite(.timeLimit(.minutes(30))) struct HeldAnswersTests {
    private static let zone = CloudZoneID("Journal")
    private static let theirs = CloudZoneID("Journal", owner: "_ben")

    private func cloud(_ address: ServerAddress, timeouts: HTTPTimeouts = HTTPTimeouts()) throws -> HTTPCloud {
        let store = SessionMemory()
        let cloud = HTTPCloud(
            address, container: "iCloud.org.example.journal", environment: .development, session: store, timeouts: timeouts)
        store.keep(try CloudSession(cloud: cloud.name, userRecordName: "_anna", token: "token"))
        return cloud
    }

    private func failure<Value>(_ body: () async throws -> Value) async throws -> CloudError {
        do {
            let value = try await body()
            Issue.record("it did not fail: \(value)")
            return CloudError(.serviceUnavailable, "")
        } catch {
            return try #require(error as? CloudError)
        }
    }

    private static func share(
        _ name: String = "Share-1", zone: String = #"{"zoneName":"Journal"}"#, root: String? = nil, participants: String = "",
        permission: String = "NONE"
    ) -> String {
        let extra = root.map { #""root":"\#($0)""# } ?? ""
        return """
            {"recordName":"\(name)","zoneID":\(zone),"publicPermission":"\(permission)","participants":[\(participants)],\
            "tidemark":{\(extra)}}
            """
    }

    private static let bens = #"{"zoneName":"Journal","ownerRecordName":"_ben"}"#

    private static func entry(_ kind: String) -> String {
        #"{"microseconds":5,"userRecordName":"_a","recordName":"s","zoneID":{"zoneName":"Journal"},"kind":"\#(kind)"}"#
    }

    // Shares

    @Test(arguments: [
        share(zone: #"{"zoneName":"Other","ownerRecordName":"_ben"}"#),
        share(zone: #"{"zoneName":"Journal","ownerRecordName":"_eve"}"#),
        // Nobody shares their own zone with themselves.
        share(), share(zone: #"{"zoneName":"Journal","ownerRecordName":"_anna"}"#),
        "\(share(zone: bens)),\(share(zone: bens))",
    ])
    func `shares that were not requested are refused`(shares: String) async throws {
        let stub = try StubServer { _, _ in .json(#"{"shares":[\#(shares)]}"#) }
        let error = try await failure { try await cloud(stub.address).database(.shared).shares(in: Self.theirs) }
        #expect(error.code == .internalError && error.reason.contains("not asked for"))
    }

    @Test func `shares that were requested are returned`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"shares":[\#(Self.share()),\#(Self.share("Share-2"))]}"#) }
        let shares = try await cloud(stub.address).database(.private).shares(in: Self.zone)
        #expect(shares.map(\.id.recordName) == ["Share-1", "Share-2"])
        let other = try StubServer { _, _ in .json(#"{"shares":[\#(Self.share(zone: Self.bens))]}"#) }
        #expect(try await cloud(other.address).database(.shared).shares(in: Self.theirs).map(\.id.zone) == [Self.theirs])
    }

    @Test func `the caller's own zones have the caller's name or none as owner, and no other name`() async throws {
        let annas = #"{"zoneName":"Journal","ownerRecordName":"_anna"}"#
        let own = [Self.zone, CloudZoneID("Journal", owner: "_anna")]
        for zone in own {
            for answer in [annas, #"{"zoneName":"Journal"}"#] {
                let stub = try StubServer { _, _ in .json(#"{"shares":[\#(Self.share(zone: answer))]}"#) }
                #expect(try await cloud(stub.address).database(.private).shares(in: zone).count == 1)
            }
            let stub = try StubServer { _, _ in .json(#"{"shares":[\#(Self.share(zone: Self.bens))]}"#) }
            let error = try await failure { try await cloud(stub.address).database(.private).shares(in: zone) }
            #expect(error.code == .internalError && error.reason.contains("not asked for"))
        }
    }

    @Test func `a new share covers what was requested, and a changed share is the requested one`() async throws {
        let stub = try StubServer { _, number in
            .json(number == 0 ? Self.share(root: "other") : number == 1 ? Self.share("Share-2") : Self.share(root: "senja"))
        }
        let database = try cloud(stub.address).database(.private)
        func create() async throws -> CloudShare {
            try await database.createShare(
                in: Self.zone, coverage: .hierarchy(root: "senja"), title: nil, publicPermission: .none)
        }
        #expect(try await failure(create).reason.contains("not asked for"))
        let changed = try await failure {
            try await database.changeShare(CloudRecordID("Share-1", in: Self.zone), [.setTitle("A")])
        }
        #expect(changed.reason.contains("not asked for"))
        #expect(try await create().coverage == .hierarchy(root: "senja"))
    }

    @Test func `an open link is refused where a personal link was requested`() async throws {
        let stub = try StubServer { _, number in
            .json(number == 0 ? #"{"id":"i","token":"t"}"# : #"{"id":"i","token":"t","participantId":"p"}"#)
        }
        let database = try cloud(stub.address).database(.private)
        func make() async throws -> ShareLink {
            try await database.makeLink(to: CloudRecordID("Share-1", in: Self.zone), for: "p")
        }
        #expect(try await failure(make).reason.contains("not asked for"))
        #expect(try await make().participant == "p")
    }

    @Test func `participants and log entries that were not requested are refused`() async throws {
        let entry = Self.entry("accepted")
        let stub = try StubServer { request, _ in
            request.line.hasSuffix("/users/find")
                ? .json(#"{"users":[{"userRecordName":"_eve","lookupInfo":{"emailAddress":"eve@example.org"}}]}"#)
                : .json(#"{"entries":[\#(entry)]}"#)
        }
        let database = try cloud(stub.address).database(.private)
        let people = try await failure { try await database.users(matching: [.emailAddress("ben@example.org")]) }
        #expect(people.reason.contains("not asked for"))
        #expect(try await database.users(matching: [.emailAddress("Eve@example.org")]).count == 1)
        #expect(try await database.shareAudit(in: Self.zone, after: 4).count == 1)
        #expect(try await failure { try await database.shareAudit(in: Self.zone, after: 5) }.reason.contains("not asked for"))
        let other = CloudZoneID("Other")
        #expect(try await failure { try await database.shareAudit(in: other, after: nil) }.reason.contains("not asked for"))
    }

    // Unknown values

    @Test func `an unknown value of a participant from a newer server permits nothing`() async throws {
        let participant =
            #"{"participantId":"p","userIdentity":{"lookupInfo":{"handle":"@b"}},"type":"EDITOR","permission":"COMMENT","acceptanceStatus":"ASKED"}"#
        let stub = try StubServer { _, _ in
            .json(#"{"shares":[\#(Self.share(participants: participant, permission: "COMMENT"))]}"#)
        }
        let share = try #require(try await cloud(stub.address).database(.private).shares(in: Self.zone).first)
        #expect(share.publicPermission == .unknown)
        #expect(
            share.participants == [
                ShareParticipant(
                    id: "p", identity: UserIdentity(), role: .unknown, permission: .unknown, acceptanceStatus: .unknown)
            ])
    }

    @Test func `unknown kinds of log entries of a newer server are left out`() async throws {
        let stub = try StubServer { _, _ in .json(#"{"entries":[\#(Self.entry("archived")),\#(Self.entry("accepted"))]}"#) }
        let entries = try await cloud(stub.address).database(.private).shareAudit(in: Self.zone, after: nil)
        #expect(entries.map(\.kind) == [.accepted])
    }

    @Test(arguments: [
        (#"{"value":"x","type":"POLYGON"}"#, "is of the type 'POLYGON', which this version does not know"),
        (#"{"value":{"recordName":"b","action":"ARCHIVE"},"type":"REFERENCE"}"#, "can't be read: "),
    ])
    func `an unreadable field is reported with its record`(field: String, told: String) async throws {
        let stub = try StubServer { _, _ in
            .json(
                #"{"zones":[{"syncToken":"t","records":[{"recordName":"senja","recordType":"Destination","fields":{"shape":\#(field)}}]}]}"#
            )
        }
        let database = try cloud(stub.address).database(.private)
        let error = try await failure { try await database.zoneChanges(Self.zone, since: nil, limit: nil, desiredKeys: nil) }
        #expect(error.code == .internalError)
        #expect(error.reason.contains("the field 'shape' of Destination 'senja' \(told)"))
    }

    // Advice

    @Test func `the error about an address with a path asks whether the path is right`() async throws {
        let stub = try StubServer { _, _ in
            .json(
                """
                {"serverErrorCode":"NOT_FOUND","reason":"could not find handler for endpoint",
                "tidemark":{"code":"unknownItem","remedy":"checkAddress"}}
                """,
                status: "404 Not Found")
        }
        let address = try ServerAddress("http://127.0.0.1:\(stub.port)/journal")
        let error = try await failure { try await cloud(address).signIn(email: "anna@example.org", password: "a") }
        #expect(error.reason.contains("is the cloud really below /journal?"))
    }

    @Test func `the error about a server that closes at once, or is not HTTP, asks about https`() async throws {
        for reply in [StubServer.Reply.last([]), .last([0x15, 3, 1, 0, 2, 2, 22]), .page("400 Bad Request")] {
            let stub = try StubServer { _, _ in reply }
            let error = try await failure { try await cloud(stub.address).signIn(email: "anna@example.org", password: "a") }
            #expect(error.reason.contains("https"), "\(error)")
        }
    }

    @Test func `the wait comes from the header if the answer does not name one`() async throws {
        let stub = try StubServer { _, _ in
            .json(
                #"{"serverErrorCode":"THROTTLED","reason":"too many"}"#, status: "429 Too Many Requests",
                headers: ["Retry-After: 42"])
        }
        let error = try await failure { try await cloud(stub.address).signIn(email: "anna@example.org", password: "a") }
        #expect(error.code == .requestRateLimited && error.retryAfter == .seconds(42))
    }

    // Compressing

    private static var packing: HTTPTimeouts {
        var timeouts = HTTPTimeouts()
        timeouts.packsOnLoopback = true
        return timeouts
    }

    private static func request(_ caption: String) -> ModifyRecordsRequest {
        ModifyRecordsRequest(
            zone: zone,
            operations: [
                RecordOperation(
                    .create, CloudRecord(CloudRecordID("a", in: zone), type: "Destination", fields: ["caption": .string(caption)])
                )
            ], clientToken: "t")
    }

    @Test func `large requests are compressed, but not small ones, contents, or requests to this machine`() async throws {
        let stub = try StubServer { request, _ in
            request.line.hasPrefix("PUT")
                ? .json(#"{"received":5000}"#) : .json(#"{"records":[{"recordName":"a","deleted":true}]}"#)
        }
        let long = String(repeating: "Senja ", count: 1000)
        let database = try cloud(stub.address, timeouts: Self.packing).database(.private)
        _ = try await database.modify(Self.request("Senja"))
        _ = try await database.modify(Self.request(long))
        let asset = CloudAsset(digest: String(repeating: "a", count: 64), size: 5000)
        _ = try await database.upload(Data(repeating: 0x61, count: 5000), of: asset, at: 0, in: Self.zone)
        _ = try await cloud(stub.address).database(.private).modify(Self.request(long))
        #expect(stub.requests.map { $0.header("Content-Encoding") } == [nil, "gzip", nil, nil])
        let sizes = stub.requests.map { Int($0.header("Content-Length") ?? "") ?? 0 }
        #expect(sizes[1] < 1000 && sizes[3] > 6000)
    }

    @Test func `a server that refuses compressed bodies gets uncompressed ones from then on`() async throws {
        let stub = try StubServer { request, _ in
            request.header("Content-Encoding") == nil
                ? .json(#"{"records":[{"recordName":"a","deleted":true}]}"#)
                : .json(#"{"serverErrorCode":"BAD_REQUEST","reason":"packed"}"#, status: "415 Unsupported Media Type")
        }
        let database = try cloud(stub.address, timeouts: Self.packing).database(.private)
        let request = Self.request(String(repeating: "x", count: 5000))
        for _ in 0..<2 { #expect(try await database.modify(request).count == 1) }
        #expect(stub.requests.map { $0.header("Content-Encoding") } == ["gzip", nil, nil])
    }

    // Notifications

    @Test func `a listener is told when the server is unreachable`() async throws {
        var timeouts = HTTPTimeouts()
        (timeouts.pause, timeouts.pauseMax) = (.milliseconds(1), .milliseconds(5))
        // The first answer says where to begin; then the server is gone.
        var stub: StubServer? = try StubServer { _, number in
            number == 0 ? .last(Array("HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n{\"cursor\":\"c\"}".utf8)) : .broken
        }
        let database = try cloud(try #require(stub).address, timeouts: timeouts).database(.private)
        var news = try await database.notifications().makeAsyncIterator()
        stub = nil
        #expect(await news.next() != nil)
    }
}
