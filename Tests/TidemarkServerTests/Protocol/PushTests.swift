import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkEmbeddedCloud
import TidemarkIdentity
import TidemarkModel

@testable import TidemarkServer

/// Goal: a subscriber is notified of its own records, within limits, and takes nothing from others. Method: the protocol against
/// the real server; what depends on timing, against the parts themselves.
@Suite(.timeLimit(.minutes(30))) struct PushTests {
    private let tokens = "/database/1/\(FaultyCloudFixture.container)/development/tokens"

    private func client(_ account: String = "anna@example.org") async throws -> ProtocolClient {
        try await ProtocolClient(.started(), account: account)
    }

    private func subscription(
        _ id: String = "s", zone: String = #"{"zoneName":"notes"}"#, type: String = "Note", filters: String = "",
        more: String = ""
    ) -> String {
        #"{"subscriptionID":"\#(id)","subscriptionType":"query","zoneID":\#(zone),"query":{"recordType":"\#(type)","filterBy":[\#(filters)]},"firesOn":["create"]\#(more)}"#
    }

    private func subscribe(_ client: ProtocolClient, _ subscriptions: [String]) async throws -> ProtocolClient.Answer {
        let operations = subscriptions.map { #"{"operationType":"create","subscription":\#($0)}"# }
        return try await client.post("subscriptions/modify", #"{"operations":[\#(operations.joined(separator: ","))]}"#)
    }

    private func makeToken(_ client: ProtocolClient) async throws -> (token: String, mailbox: String) {
        let made = try await client.post(tokens + "/create", #"{"apnsEnvironment":"development"}"#).object
        return (try #require(made.text("apnsToken")), try #require(made.text("webcourierURL")))
    }

    private func save(_ name: String, _ client: ProtocolClient) async throws {
        try await client.modify("create", record: #"{"recordName":"\#(name)","recordType":"Note"}"#)
    }

    @Test func `a subscription that is too large is refused, with its place`() async throws {
        let anna = try await client()
        let long = String(repeating: "x", count: 256)
        let value = String(repeating: "y", count: 17_000)
        let filter = #"{"fieldName":"t","comparator":"EQUALS","fieldValue":{"value":"\#(value)"}}"#
        let refused: [(subscription: String, what: String)] = [
            (subscription(long), "subscriptionID"),
            (subscription(zone: #"{"zoneName":"\#(long)"}"#), "zoneName"),
            (subscription(zone: #"{"zoneName":"notes","ownerRecordName":"\#(long)"}"#), "ownerRecordName"),
            (subscription(type: long), "recordType"),
            (subscription(filters: filter), "16384"),
            (subscription(more: #","notificationInfo":{"category":"\#(String(repeating: "z", count: 17_000))"}"#), "16384"),
            (subscription(more: #","notificationInfo":{"alertBody":"\#(String(repeating: "a", count: 1_025))"}"#), "alertBody"),
        ]
        for (subscription, what) in refused {
            let answer = try await subscribe(anna, [subscription])
            let reason = answer.object.text("reason") ?? ""
            #expect(answer.status == 400 && answer.object.text("serverErrorCode") == "BAD_REQUEST", "\(what)")
            #expect(reason.contains("operations[0].subscription") && reason.contains(what), "\(what): \(reason)")
        }
        #expect(try await anna.get("subscriptions/list").list("subscriptions").isEmpty)
        let largest = subscription(more: #","notificationInfo":{"alertBody":"\#(String(repeating: "a", count: 1_024))"}"#)
        #expect(try await subscribe(anna, [largest]).list("subscriptions")[0].text("serverErrorCode") == nil)
    }

    @Test func `an account has a hundred subscriptions in a database, and can change them still`() async throws {
        let anna = try await client()
        let made = try await subscribe(anna, (0...100).map { subscription("s\($0)") }).list("subscriptions")
        #expect(made.count == 101 && made[..<100].allSatisfy { $0.text("serverErrorCode") == nil })
        #expect(made[100].text("serverErrorCode") == "BAD_REQUEST")
        #expect(try await subscribe(anna, [subscription("s7")]).list("subscriptions")[0].text("serverErrorCode") == nil)
        #expect(try await subscribe(anna.of("public"), [subscription()]).list("subscriptions")[0].text("serverErrorCode") == nil)
        #expect(try await anna.get("subscriptions/list").list("subscriptions").count == 100)
    }

    @Test func `a subscription in the shared database names the owner of its zone`() async throws {
        let anna = try await client().of("shared")
        let answer = try await subscribe(anna, [subscription()])
        #expect(answer.status == 400 && answer.object.text("reason")?.contains("ownerRecordName") == true)
        let named = try await subscribe(anna, [subscription(zone: #"{"zoneName":"notes","ownerRecordName":"_someone"}"#)])
        #expect(named.list("subscriptions")[0].text("subscriptionID") == "s")
    }

    @Test func `a device's new wait ends its older one, and gets the notification`() async throws {
        let anna = try await client()
        try await anna.makeZone()
        _ = try await subscribe(anna, [subscription()])
        let mailbox = try await makeToken(anna).mailbox
        let answers = try await withThrowingTaskGroup(of: ProtocolClient.Answer.self) { group in
            for _ in 0..<2 { group.addTask { try await anna.send(.GET, url: mailbox) } }
            let older = try await group.next()
            // Nothing was saved yet, so only the new wait can have ended it.
            try await save("n1", anna)
            return [older, try await group.next()].compactMap { $0 }
        }
        #expect(answers.map(\.status) == [200, 200])
        #expect(answers[0].bytes.isEmpty && answers[1].object.text("ck", "qry", "rid") == "n1")
    }

    @Test func `a subscription with filters is notified only of records that its query finds`() async throws {
        let anna = try await client()
        try await anna.makeZone()
        try await save("n0", anna)
        try await anna.subject.fixture.index("recordName", of: "Note")
        let filter = #"{"systemFieldName":"recordName","comparator":"BEGINS_WITH","fieldValue":{"value":"b"}}"#
        let made = try await subscribe(anna, [subscription(filters: filter)])
        #expect(made.list("subscriptions")[0].text("serverErrorCode") == nil)
        let mailbox = try await makeToken(anna).mailbox
        try await save("a1", anna)
        try await save("b1", anna)
        #expect(try await anna.send(.GET, url: mailbox).object.text("ck", "qry", "rid") == "b1")
    }

    @Test
    func `a client that registers another account's token neither gets nor sends that account's notifications`() async throws {
        let anna = try await client()
        let ben = try await ProtocolClient(anna.subject, account: "ben@example.org")
        let (annas, bens) = (try await makeToken(anna), try await makeToken(ben))
        for (client, token) in [(ben, annas.token), (anna, bens.token)] {
            let registered = try await client.post(
                tokens + "/register", #"{"apnsEnvironment":"development","apnsToken":"\#(token)"}"#)
            #expect(registered.status == 200)
        }
        for client in [anna, ben] {
            try await client.makeZone()
            _ = try await subscribe(client, [subscription()])
        }
        // The notifications are sent in this order.
        try await save("ben1", ben)
        try await save("anna1", anna)
        try await save("ben2", ben)
        #expect(try await anna.send(.GET, url: annas.mailbox).object.text("ck", "qry", "rid") == "anna1")
        #expect(try await ben.send(.GET, url: bens.mailbox).object.text("ck", "qry", "rid") == "ben1")
        #expect(try await ben.send(.GET, url: bens.mailbox).object.text("ck", "qry", "rid") == "ben2")
    }

    @Test func `the mailbox address of a deleted or disabled account no longer works`() async throws {
        let anna = try await client()
        let fixture = anna.subject.fixture
        try await anna.makeZone()
        _ = try await subscribe(anna, [subscription()])
        let annas = try await makeToken(anna).mailbox
        try await save("n1", anna)
        #expect(try await anna.send(.GET, url: annas).status == 200)
        try await fixture.setStatus(.restricted, of: "anna@example.org")
        #expect(try await anna.send(.GET, url: annas).status == 404)

        let dora = try await ProtocolClient(anna.subject, account: "dora@example.org")
        let doras = try await makeToken(dora).mailbox
        try await fixture.cloud.removeIfUnused(try #require(try await fixture.cloud.account("dora@example.org")))
        try #require(try await fixture.cloud.account("dora@example.org") == nil)
        let answer = try await dora.send(.GET, url: doras)
        #expect(answer.status == 404 && answer.object.text("serverErrorCode") == "NOT_FOUND")
    }

    @Test func `the mailbox address of a container that is no longer served does not work`() async throws {
        let anna = try await client()
        let mailbox = try await makeToken(anna).mailbox
        try await anna.subject.access.removeContainer(FaultyCloudFixture.container)
        #expect(try await anna.send(.GET, url: mailbox).status == 404)
    }

    // The parts

    private func call(
        _ served: ServedCloud, _ scope: DatabaseScope, account: String?, cursor: String?
    ) throws -> Call {
        Call(
            operation: try #require(served.operations.first { $0.id == "tidemark.notifications" }), uuid: "u",
            caller: Caller(account: account), address: "127.0.0.1", container: FaultyCloudFixture.container,
            environment: .development,
            scope: scope, parameters: [:], query: cursor.map { ["cursor": $0] } ?? [:], body: [], stream: nil, headers: [:],
            isExtended: true, baseURL: "http://localhost")
    }

    @Test func `the format of subscriptions that this version writes is frozen`() async throws {
        let fixture = try FaultyCloudFixture()
        _ = try ServedCloud(at: fixture.directory, access: try CredentialStore(at: fixture.directory))
        #expect(
            try FrozenFormats.format(of: fixture.directory.appendingPathComponent("subscriptions.sqlite"))
                == FrozenFormats.newest("subscriptions"),
            "the format of subscriptions has changed: run Tests/Fixtures/make-formats, and commit the archive")
    }

    @Test func `a client with too many waits at once is throttled, and others are not`() async throws {
        let fixture = try FaultyCloudFixture()
        let access = try CredentialStore(at: fixture.directory)
        try await access.addContainer(FaultyCloudFixture.container)
        let served = try ServedCloud(at: fixture.directory, access: access)
        let anna = try #require(try await fixture.id("anna@example.org"))
        let ben = try #require(try await fixture.id("ben@example.org"))
        // An invalid cursor is answered at once.
        let waiting = try call(served, .private, account: anna, cursor: "x")
        for _ in 0..<LongPollLimiter.waitsMost { try served.waits.enter(anna) }
        let thrown = await #expect(throws: CloudError.self) { try await served.awaitChange(waiting) }
        let error = try #require(thrown)
        #expect(error.code == .requestRateLimited && error.retryAfter != nil)
        #expect(Refusal(error).name == "THROTTLED" && Refusal(error).status.code == 429)
        _ = try await served.awaitChange(try call(served, .private, account: ben, cursor: "x"))
        served.waits.leave(anna)
        // Each ended wait frees its place.
        for _ in 0..<3 { _ = try await served.awaitChange(waiting) }
    }

    @Test func `waiting for changes of the public database needs an account`() async throws {
        let fixture = try FaultyCloudFixture()
        let access = try CredentialStore(at: fixture.directory)
        try await access.addContainer(FaultyCloudFixture.container)
        let served = try ServedCloud(at: fixture.directory, access: access)
        let waiting = try call(served, .public, account: nil, cursor: nil)
        let error = await #expect(throws: CloudError.self) { try await served.awaitChange(waiting) }
        #expect(error?.code == .notAuthenticated)
    }

    @Test func `a notification that was taken and not delivered comes first again`() async {
        let (mailbox, box) = (NotificationMailbox(), NotificationMailbox.Box(account: "anna", token: "t"))
        for frame: [UInt8] in [[1], [2], [3]] { await mailbox.put(frame, for: box) }
        let first = await mailbox.take(for: box)
        #expect(first == [1])
        await mailbox.putBack([1], for: box)
        var frames: [[UInt8]?] = []
        for _ in 0..<3 { frames.append(await mailbox.take(for: box)) }
        #expect(frames == [[1], [2], [3]])
    }

    @Test func `a wait that is cancelled takes nothing`() async {
        let (mailbox, box) = (NotificationMailbox(), NotificationMailbox.Box(account: "anna", token: "t"))
        let waiting = Task { await mailbox.take(for: box) }
        waiting.cancel()
        #expect(await waiting.value == nil)
        await mailbox.put([7], for: box)
        #expect(await mailbox.take(for: box) == [7])
    }

    @Test func `the latest unfetched notifications are kept, with a limit for each account`() async {
        let size = 1_000
        var limits = NotificationMailbox.Limits()
        (limits.framesOfBox, limits.sizeOfBox, limits.sizeOfAccount) = (2, 5_000, 3 * (size + 200))
        let mailbox = NotificationMailbox(limits: limits)
        func frame(_ byte: UInt8) -> [UInt8] { Array(repeating: byte, count: size) }
        let (one, other, bens) = (
            NotificationMailbox.Box(account: "anna", token: "1"), NotificationMailbox.Box(account: "anna", token: "2"),
            NotificationMailbox.Box(account: "ben", token: "1")
        )
        for byte: UInt8 in 1...3 { await mailbox.put(frame(byte), for: one) }
        for byte: UInt8 in 4...5 { await mailbox.put(frame(byte), for: other) }
        await mailbox.put(frame(6), for: bens)
        #expect(await mailbox.take(for: one) == frame(2))
        #expect(await mailbox.take(for: one) == frame(3))
        #expect(await mailbox.take(for: other) == frame(4))
        #expect(await mailbox.take(for: bens) == frame(6))
        // There was no room for the fifth notification; now there is.
        await mailbox.put(frame(7), for: other)
        #expect(await mailbox.take(for: other) == frame(7))
    }
}
