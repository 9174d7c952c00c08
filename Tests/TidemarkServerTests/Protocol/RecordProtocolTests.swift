import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkServer

/// Goal: the server does what Documentation/Formats/http.md says where the protocol leaves it open, and understands clients'
/// habits. Method: requests as clients send them, to the real server.
@Suite(.timeLimit(.minutes(30))) struct RecordProtocolTests {
    private func client(_ account: String? = "anna@example.org") async throws -> ProtocolClient {
        try await ProtocolClient(.started(), account: account)
    }

    @Test func `zones are listed by GET and POST alike`() async throws {
        let client = try await client()
        try await client.makeZone()
        let (get, post) = (try await client.get("zones/list"), try await client.post("zones/list"))
        #expect(get.bytes == post.bytes)
        #expect(get.list("zones").map { $0.text("zoneID", "zoneName") } == ["_defaultZone", "notes"])
        #expect(get.list("zones").map { $0.text("zoneID", "zoneType") } == ["DEFAULT_ZONE", "REGULAR_CUSTOM_ZONE"])
        #expect(get.object.text("syncToken") != nil)
    }

    @Test func `a request may name zones directly or within objects, and each gets its answer`() async throws {
        let client = try await client()
        try await client.makeZone()
        let answer = try await client.post("zones/lookup", #"{"zones":[{"zoneName":"notes"},{"zoneID":{"zoneName":"gone"}}]}"#)
        #expect(answer.list("zones").map { $0.text("serverErrorCode") } == [nil, "ZONE_NOT_FOUND"])
        let again = try await client.post(
            "zones/modify",
            #"{"operations":[{"operationType":"create","zone":{"zoneName":"notes"}},{"operationType":"create","zone":{"zoneID":{"zoneName":"a b"}}},{"operationType":"delete","zone":{"zoneID":{"zoneName":"never"}}}]}"#
        )
        #expect(again.status == 200)
        #expect(again.list("zones").map { $0.text("serverErrorCode") } == [nil, "BAD_REQUEST", nil])
        #expect(again.list("zones")[2].number("deleted") == 1)
    }

    @Test func `an atomic failure is answered with 200, the culprit with its own code`() async throws {
        let client = try await client()
        try await client.makeZone()
        let operations =
            #""operations":[{"operationType":"create","record":{"recordName":"a","recordType":"Note","fields":{}}},{"operationType":"update","record":{"recordName":"b","recordType":"Note","recordChangeTag":"1"}}]"#
        // By default a request to a custom zone is atomic.
        for atomic in ["", #""atomic":true,"#] {
            let answer = try await client.post("records/modify", #"{"zoneID":{"zoneName":"notes"},\#(atomic)\#(operations)}"#)
            #expect(answer.status == 200)
            #expect(answer.list("records").map { $0.text("serverErrorCode") } == ["ATOMIC_ERROR", "NOT_FOUND"])
        }
        let apart = try await client.post("records/modify", #"{"zoneID":{"zoneName":"notes"},"atomic":false,\#(operations)}"#)
        #expect(apart.list("records").map { $0.text("serverErrorCode") } == [nil, "NOT_FOUND"])
        // A request to the default zone is not atomic, and can't be.
        let usual = try await client.post("records/modify", "{\(operations)}")
        #expect(usual.list("records").map { $0.text("serverErrorCode") } == [nil, "NOT_FOUND"])
        let refused = try await client.post("records/modify", "{\"atomic\":true,\(operations)}")
        #expect(refused.status == 400)
        #expect(refused.object.text("reason") == "atomic operations not supported in default zone")
    }

    @Test func `a value without a type gets the type that the schema has for its field`() async throws {
        let client = try await client()
        try await client.makeZone()
        try await client.modify(
            "create",
            record:
                #"{"recordName":"a","recordType":"Note","fields":{"at":{"value":1763712000123,"type":"TIMESTAMP"},"n":{"value":1.5}}}"#
        )
        let second = try await client.modify(
            "create",
            record:
                #"{"recordName":"b","recordType":"Note","fields":{"at":{"value":1763712000999},"n":{"value":2},"new":{"value":[]}}}"#
        )
        #expect(second.text("fields", "at", "type") == "TIMESTAMP")
        #expect(second.text("fields", "n", "type") == "DOUBLE")
        #expect(second.object("fields")?["new"] == nil)
        let wrong = try await client.modify(
            "create", record: #"{"recordName":"c","recordType":"Note","fields":{"at":{"value":"soon"}}}"#)
        #expect(wrong.text("serverErrorCode") == "BAD_REQUEST")
        #expect(wrong.text("reason")?.contains("expected type TIMESTAMP") == true)
    }

    @Test func `null removes a field, and an empty text or list does not`() async throws {
        let client = try await client()
        try await client.makeZone()
        let made = try await client.modify(
            "create",
            record: #"{"recordName":"a","recordType":"Note","fields":{"t":{"value":"x"},"u":{"value":"y"},"l":{"value":["z"]}}}"#)
        let tag = try #require(made.text("recordChangeTag"))
        let changed = try await client.modify(
            "update",
            record:
                #"{"recordName":"a","recordType":"Note","recordChangeTag":"\#(tag)","fields":{"t":{"value":null},"u":{"value":""},"l":{"value":[]}}}"#
        )
        #expect(changed.object("fields")?.keys.sorted() == ["l", "u"])
        #expect(changed.text("fields", "l", "type") == "STRING_LIST")
    }

    @Test func `an empty token means the current state, and each zone gets its own answer`() async throws {
        let client = try await client()
        try await client.makeZone()
        try await client.modify("create", record: #"{"recordName":"a","recordType":"Note"}"#)
        let now = try await client.post(
            "changes/zone",
            #"{"zones":[{"zoneID":{"zoneName":"notes"},"syncToken":""},{"zoneID":{"zoneName":"gone"}},{"zoneID":{"zoneName":"notes"},"syncToken":"nonsense"},{}]}"#
        )
        #expect(now.status == 200)
        #expect(now.list("zones").map { $0.text("serverErrorCode") } == [nil, "ZONE_NOT_FOUND", "BAD_REQUEST", "BAD_REQUEST"])
        #expect((now.list("zones")[0]["records"] as? [any Sendable])?.isEmpty == true)
        let token = try #require(now.list("zones")[0].text("syncToken"))
        try await client.modify("forceDelete", record: #"{"recordName":"a"}"#)
        let then = try await client.post("records/changes", #"{"zoneID":{"zoneName":"notes"},"syncToken":"\#(token)"}"#)
        #expect(then.list("records").map { $0.text("recordName") } == ["a"])
        #expect(then.list("records")[0].number("deleted") == 1)
        #expect(then.object.number("moreComing") == 0)
        let whole = try await client.post("zones/changes", "{}")
        #expect(whole.list("zones").map { $0.text("zoneID", "zoneName") } == ["notes"])
        #expect(whole.object.text("metaSyncToken") != nil)
    }

    @Test func `several queries in a request get an answer each, with the zone's token on request`() async throws {
        let client = try await client()
        try await client.makeZone()
        try await client.modify("create", record: #"{"recordName":"a","recordType":"Note","fields":{"t":{"value":"x"}}}"#)
        try await client.subject.index("recordName", of: "Note")
        let answer = try await client.post(
            "internal/records/query/batch?getCurrentSyncToken=true&remapEnums=true",
            #"{"batch":[{"zoneID":{"zoneName":"notes"},"query":{"recordType":"Note"}},{"zoneID":{"zoneName":"notes"},"query":{"recordType":"Note","filterBy":{"fieldName":"t","comparator":"EQUALS","fieldValue":{"value":"x"}}}}]}"#
        )
        let batch = answer.list("batch")
        #expect((batch[0]["records"] as? [any Sendable])?.count == 1)
        #expect(batch[0].text("syncToken") != nil)
        #expect(batch[1].text("reason") == "Field 't' is not marked queryable")
        let token = try #require(batch[0].text("syncToken"))
        let changes = try await client.post("records/changes", #"{"zoneID":{"zoneName":"notes"},"syncToken":"\#(token)"}"#)
        #expect(changes.list("records").isEmpty)
    }

    @Test func `only the requested fields are returned, for each record or for all`() async throws {
        let client = try await client()
        try await client.makeZone()
        for name in ["a", "b"] {
            try await client.modify(
                "create", record: #"{"recordName":"\#(name)","recordType":"Note","fields":{"t":{"value":"x"},"u":{"value":9}}}"#)
        }
        let found = try await client.post(
            "records/lookup",
            #"{"zoneID":{"zoneName":"notes"},"numbersAsStrings":true,"records":[{"recordName":"a","desiredKeys":["u"]},{"recordName":"b","desiredKeys":[]},{"recordName":"c"}],"desiredKeys":["t"]}"#
        )
        #expect(found.list("records").map { $0.object("fields")?.keys.sorted() } == [["u"], [], nil])
        #expect(found.list("records")[0].text("fields", "u", "value") == "9")
        #expect(found.list("records")[2].text("serverErrorCode") == "NOT_FOUND")
    }

    @Test func `the caller's own identity has the flat form, and those of others the older forms`() async throws {
        let client = try await client()
        try await client.subject.describe(
            "ben@example.org", name: PersonName(givenName: "Ben", familyName: "Ek"), phone: "+4612345678")
        let me = try await client.of("public").get("users/caller")
        #expect(me.object.text("userRecordName")?.hasPrefix("_") == true)
        #expect(try await client.get("users/current").object.text("userRecordName") == me.object.text("userRecordName"))
        let ben = try await ProtocolClient(client.subject, account: "ben@example.org")
        let asked = #"{"users":[{"emailAddress":"ben@example.org"}]}"#
        #expect(
            try await client.of("public").post("users/lookup/email", asked).list("users")[0].text("serverErrorCode")
                == "NOT_FOUND")
        let setting = "/tidemark/1/\(FaultyCloudFixture.container)/development/private/account/set"
        #expect(try await ben.post(setting, #"{"discoverable":true}"#).status == 200)
        #expect(try await ben.post(setting, #"{"discoverable":"yes"}"#).status == 400)
        let others = try await client.of("public").post(
            "users/lookup/email", #"{"users":[{"emailAddress":"ben@example.org"},{"emailAddress":"nobody@example.org"}]}"#)
        #expect(others.list("users").map { $0.text("firstName") } == ["Ben", nil])
        #expect(others.list("users")[1].text("serverErrorCode") == "NOT_FOUND")
        let found = try await client.of("public").post(
            "users/discover", #"{"lookupInfos":[{"phoneNumber":"+46 123 456 78"},{"emailAddress":"nobody@example.org"}]}"#)
        #expect(found.list("users").map { $0.text("nameComponents", "familyName") } == ["Ek"])
    }

    @Test func `an account that looks up hundreds of people is throttled`() async throws {
        let client = try await client()
        let list = (0..<100).map { #"{"emailAddress":"p\#($0)@example.org"}"# }.joined(separator: ",")
        for _ in 0..<2 {
            #expect(try await client.of("public").post("users/lookup/email", "{\"users\":[\(list)]}").status == 200)
        }
        // More look-ups than become free again while the test runs, however slow the machine is.
        let refused = try await client.of("public").post("users/discover", "{\"lookupInfos\":[\(list)]}")
        #expect(refused.status == 429 && refused.object.text("serverErrorCode") == "THROTTLED")
        #expect(refused.headers.first(name: "Retry-After") != nil)
    }
}
