import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkServer

/// Goal: people can share by the protocol alone. Method: two accounts, section 8 of the protocol, against the real server.
@Suite(.timeLimit(.minutes(30))) struct ShareProtocolTests {
    private func shared(
        _ more: String = ""
    ) async throws -> (anna: ProtocolClient, ben: ProtocolClient, share: ProtocolClient.Object) {
        let anna = try await ProtocolClient(.started(), account: "anna@example.org")
        let ben = try await ProtocolClient(anna.subject, account: "ben@example.org")
        try await anna.makeZone()
        try await anna.modify("create", record: #"{"recordName":"n1","recordType":"Note","fields":{"t":{"value":"Hello"}}}"#)
        try await anna.modify("create", record: #"{"recordName":"n2","recordType":"Note","parent":{"recordName":"n1"}}"#)
        let share = try await anna.modify(
            "create",
            record: """
                {"recordType":"cloudkit.share","fields":{"cloudkit.title":{"value":"My notes"}},"forRecord":{"recordName":"n1"},"publicPermission":"NONE",
                "participants":[{"type":"USER","permission":"READ_WRITE","acceptanceStatus":"INVITED",
                "userIdentity":{"lookupInfo":{"emailAddress":"ben@example.org"}}}]\(more)}
                """)
        return (anna, ben, share)
    }

    @Test func `a record is shared, resolved, accepted and written to`() async throws {
        let (anna, ben, share) = try await shared()
        #expect(share.text("serverErrorCode") == nil, "\(share)")
        #expect(share.text("recordName")?.hasPrefix("Share-") == true)
        #expect(share.text("fields", "cloudkit.title", "value") == "My notes")
        #expect(share.text("owner", "acceptanceStatus") == "ACCEPTED" && share.text("owner", "type") == "OWNER")
        #expect(share.text("currentUserParticipant", "type") == "OWNER")
        let guid = try #require(share.text("shortGUID"))
        let request = #"{"shortGUIDs":[{"value":"\#(guid)","shouldFetchRootRecord":true},{"value":"nonsense"}]}"#

        let resolved = try await ben.of("public").post("records/resolve", request)
        #expect(resolved.status == 200)
        let (one, other) = (resolved.list("results")[0], resolved.list("results")[1])
        #expect(one.text("databaseScope") == "SHARED" && one.text("participantStatus") == "INVITED")
        #expect(one.text("participantPermission") == "READ_WRITE" && one.text("rootRecordName") == "n1")
        // The holder of the invitation sees the root before accepting it, and nothing else.
        #expect(one.text("rootRecord", "fields", "t", "value") == "Hello")
        #expect(try await ben.of("shared").post("zones/list").list("zones").isEmpty)
        #expect(other.text("serverErrorCode") == "NOT_FOUND")
        let carla = try await ProtocolClient(anna.subject, account: "carla@example.org")
        #expect(
            try await carla.of("public").post("records/resolve", request).list("results")[0].text("serverErrorCode")
                == "NOT_FOUND")

        let accepted = try await ben.of("public").post("records/accept", request)
        #expect(accepted.list("results")[0].text("participantStatus") == "ACCEPTED")
        #expect(accepted.list("results")[0].text("rootRecord", "fields", "t", "value") == "Hello")
        let zone = try #require(accepted.list("results")[0].object("zoneID"))
        let owner = try #require(zone.text("ownerRecordName"))
        let zones = try await ben.of("shared").post("zones/list")
        #expect(zones.list("zones").map { $0.text("zoneID", "ownerRecordName") } == [owner])
        let changes = try await ben.of("shared").post(
            "changes/zone", #"{"zones":[{"zoneID":{"zoneName":"notes","ownerRecordName":"\#(owner)"}}]}"#)
        let names = (changes.list("zones")[0]["records"] as? [any Sendable] ?? []).compactMap {
            ($0 as? ProtocolClient.Object)?.text("recordName")
        }
        #expect(Set(names) == ["n1", "n2", share.text("recordName") ?? ""])

        let written = try await ben.of("shared").post(
            "records/modify",
            #"{"zoneID":{"zoneName":"notes","ownerRecordName":"\#(owner)"},"operations":[{"operationType":"forceUpdate","record":{"recordName":"n2","recordType":"Note","fields":{"t":{"value":"by Ben"}}}}]}"#
        )
        #expect(written.list("records")[0].text("modified", "userRecordName") != owner)
        let root = try await anna.post("records/lookup", #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"n1"}]}"#)
        #expect(root.list("records")[0].text("share", "recordName") == share.text("recordName"))
    }

    @Test func `an update of a share invites, changes and removes`() async throws {
        let (anna, ben, share) = try await shared()
        let (name, tag) = (share.text("recordName") ?? "", share.text("recordChangeTag") ?? "")
        func update(_ tag: String, _ participants: String) -> String {
            #"{"recordName":"\#(name)","recordType":"cloudkit.share","recordChangeTag":"\#(tag)","publicPermission":"NONE","participants":[\#(participants)]}"#
        }
        let stale = try await anna.modify("update", record: update("1", ""))
        #expect(stale.text("serverErrorCode") == "CONFLICT")
        let ben1 = #"{"type":"USER","permission":"READ_ONLY","userIdentity":{"lookupInfo":{"emailAddress":"ben@example.org"}}}"#
        let carla =
            #"{"type":"USER","permission":"READ_ONLY","userIdentity":{"lookupInfo":{"emailAddress":"carla@example.org"}}}"#
        let changed = try await anna.modify("update", record: update(tag, ben1 + "," + carla))
        let people = (changed["participants"] as? [any Sendable] ?? []).compactMap { $0 as? ProtocolClient.Object }
        #expect(people.map { $0.text("permission") } == ["READ_WRITE", "READ_ONLY", "READ_ONLY"], "\(changed)")
        let fewer = try await anna.modify("update", record: update(changed.text("recordChangeTag") ?? "", carla))
        let left = (fewer["participants"] as? [any Sendable] ?? []).compactMap { $0 as? ProtocolClient.Object }
        #expect(left.filter { $0.text("acceptanceStatus") != "REMOVED" }.count == 2)
        let guid = share.text("shortGUID") ?? ""
        let gone = try await ben.of("public").post("records/accept", #"{"shortGUIDs":[{"value":"\#(guid)"}]}"#)
        #expect(gone.list("results")[0].text("serverErrorCode") == "NOT_FOUND")
    }

    @Test func `a share that can't be made is refused with a reason, and leaves nothing`() async throws {
        let (anna, ben, share) = try await shared()
        let again = try await anna.modify(
            "create", record: #"{"recordType":"cloudkit.share","forRecord":{"recordName":"n2"},"publicPermission":"NONE"}"#)
        #expect(again.text("serverErrorCode") == "EXISTS")
        let nothing = try await anna.modify(
            "create", record: #"{"recordType":"cloudkit.share","forRecord":{"recordName":"n9"},"publicPermission":"NONE"}"#)
        #expect(nothing.text("reason") == "Cannot share - no such record exists to share")
        try await anna.modify("create", record: #"{"recordName":"n3","recordType":"Note"}"#)
        let badGuest = try await anna.modify(
            "create",
            record:
                #"{"recordType":"cloudkit.share","forRecord":{"recordName":"n3"},"publicPermission":"NONE","participants":[{"userIdentity":{}}]}"#
        )
        #expect(badGuest.text("serverErrorCode") == "BAD_REQUEST")
        let fine = try await anna.modify(
            "create", record: #"{"recordType":"cloudkit.share","forRecord":{"recordName":"n3"},"publicPermission":"NONE"}"#)
        #expect(fine.text("serverErrorCode") == nil)
        // A participant who deletes the share in their database leaves; the owner ends it for all.
        let guid = share.text("shortGUID") ?? ""
        let accepted = try await ben.of("public").post("records/accept", #"{"shortGUIDs":[{"value":"\#(guid)"}]}"#)
        let owner = accepted.list("results")[0].text("zoneID", "ownerRecordName") ?? ""
        let left = try await ben.of("shared").post(
            "records/modify",
            #"{"zoneID":{"zoneName":"notes","ownerRecordName":"\#(owner)"},"operations":[{"operationType":"forceDelete","record":{"recordName":"\#(share.text("recordName") ?? "")"}}]}"#
        )
        #expect(left.list("records")[0].number("deleted") == 1, "\(left.object)")
        #expect(try await ben.of("shared").post("zones/list").list("zones").isEmpty)
    }

    @Test func `subscribers are notified once of each change that they may see, and of no other`() async throws {
        let (anna, ben, _) = try await shared()
        let made = try await anna.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s1","subscriptionType":"query","zoneID":{"zoneName":"notes"},"query":{"recordType":"Note","filterBy":[]},"firesOn":["create","delete"],"notificationInfo":{"alertBody":"New note"}}},{"operationType":"create","subscription":{"subscriptionID":"s2","subscriptionType":"zone"}}]}"#
        )
        #expect(made.status == 400, "a subscription to a zone names it")
        let fixed = try await anna.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"create","subscription":{"subscriptionID":"s1","subscriptionType":"query","zoneID":{"zoneName":"notes"},"query":{"recordType":"Note","filterBy":[]},"firesOn":["create","delete"],"notificationInfo":{"alertBody":"New note"}}}]}"#
        )
        #expect(fixed.list("subscriptions")[0].text("subscriptionID") == "s1")
        #expect(try await anna.get("subscriptions/list").list("subscriptions").count == 1)
        #expect(try await ben.get("subscriptions/list").list("subscriptions").isEmpty)
        let token = try await anna.post(
            "/database/1/\(FaultyCloudFixture.container)/development/tokens/create", #"{"apnsEnvironment":"development"}"#)
        let mailbox = try #require(token.object.text("webcourierURL"))
        let same = try await anna.post(
            "/device/1/\(FaultyCloudFixture.container)/development/tokens/register",
            #"{"apnsEnvironment":"development","apnsToken":"\#(token.object.text("apnsToken") ?? "")"}"#)
        #expect(same.status == 200)
        async let waiting = anna.send(.GET, url: mailbox)
        try await anna.modify("create", record: #"{"recordName":"x1","recordType":"Note"}"#)
        let frame = try await waiting.object
        #expect(frame.text("aps", "alert") == "New note")
        #expect(frame.text("ck", "qry", "rid") == "x1" && frame.number("ck", "qry", "fo") == 1)
        #expect(frame.text("ck", "qry", "sid") == "s1" && frame.number("ck", "qry", "dbs") == 2)
        // The subscription does not ask for updates, but for deletions.
        try await anna.modify("forceUpdate", record: #"{"recordName":"x1","recordType":"Note","fields":{"t":{"value":"y"}}}"#)
        try await anna.modify("create", record: #"{"recordName":"p1","recordType":"Place"}"#)
        try await anna.modify("forceDelete", record: #"{"recordName":"x1"}"#)
        let gone = try await anna.send(.GET, url: mailbox).object
        #expect(gone.text("ck", "qry", "rid") == "x1" && gone.number("ck", "qry", "fo") == 3)
        let removed = try await anna.post(
            "subscriptions/modify",
            #"{"operations":[{"operationType":"delete","subscription":{"subscriptionID":"s1"}},{"operationType":"delete","subscription":{"subscriptionID":"s9"}}]}"#
        )
        #expect(removed.list("subscriptions").map { $0.text("serverErrorCode") } == [nil, "NOT_FOUND"])
    }
}
