import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkServer

/// Goal: answers have the members that CloudKit's answers have in recorded traffic. Method: requests in the form of the
/// recordings, to the real server. Documentation/Formats/http.md names the sources.
@Suite(.timeLimit(.minutes(30))) struct RecordedClientTests {
    private func client(_ account: String? = "anna@example.org") async throws -> ProtocolClient {
        try await ProtocolClient(.started(), account: account)
    }

    // Encrypted values

    @Test func `encrypted values come back with the type and the mark with which they were sent`() async throws {
        let client = try await client()
        try await client.makeZone()
        let fields = """
            {"style":{"value":"eyJ0aXRsZUZvbnQiOjB9","type":"ENCRYPTED_BYTES"},
            "title":{"value":"Hello","type":"STRING","isEncrypted":true},
            "guests":{"value":2,"type":"INT64","isEncrypted":true},
            "where":{"value":59.5,"type":"DOUBLE","isEncrypted":true},
            "tags":{"value":["a","b"],"type":"STRING_LIST","isEncrypted":true},
            "both":{"value":"AAE=","type":"ENCRYPTED_BYTES","isEncrypted":true},
            "plain":{"value":"AAE=","type":"BYTES"},
            "open":{"value":"x","type":"STRING","isEncrypted":false}}
            """
        let expected: [String: (type: String, isEncrypted: Bool)] = [
            "style": ("ENCRYPTED_BYTES", false), "title": ("STRING", true), "guests": ("INT64", true), "where": ("DOUBLE", true),
            "tags": ("STRING_LIST", true), "both": ("ENCRYPTED_BYTES", true), "plain": ("BYTES", false),
            "open": ("STRING", false),
        ]
        func check(_ record: ProtocolClient.Object, _ comment: Comment) {
            for (name, field) in expected {
                #expect(record.text("fields", name, "type") == field.type, comment)
                #expect((record.number("fields", name, "isEncrypted") == 1) == field.isEncrypted, "\(name)")
            }
            #expect(record.text("fields", "style", "value") == "eyJ0aXRsZUZvbnQiOjB9", comment)
        }
        check(
            try await client.modify("create", record: #"{"recordName":"a","recordType":"Event","fields":\#(fields)}"#), "modify")
        let found = try await client.post("records/lookup", #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"a"}]}"#)
        check(found.list("records")[0], "lookup")
        try await client.subject.index("recordName", of: "Event")
        let asked = try await client.post(
            "records/query", #"{"zoneID":{"zoneName":"notes"},"query":{"recordType":"Event"},"desiredKeys":null}"#)
        check(asked.list("records")[0], "query")
        let changes = try await client.post("records/changes", #"{"zoneID":{"zoneName":"notes"}}"#)
        check(changes.list("records")[0], "changes")
        // A client that does not know the mark changes only the value.
        let tag = found.list("records")[0].text("recordChangeTag") ?? ""
        let updated = try await client.modify(
            "update",
            record:
                #"{"recordName":"a","recordType":"Event","recordChangeTag":"\#(tag)","fields":{"title":{"value":"Hi"},"open":{"value":"y"}}}"#
        )
        #expect(updated.text("fields", "title", "value") == "Hi")
        check(updated, "update")
        // A replacement has its own fields and none of the earlier ones.
        let replaced = try await client.modify(
            "forceReplace", record: #"{"recordName":"a","recordType":"Event","fields":{"title":{"value":"Bye"}}}"#)
        #expect(replaced.number("fields", "title", "isEncrypted") == nil)
        let wrong = try await client.modify(
            "forceUpdate",
            record: #"{"recordName":"a","recordType":"Event","fields":{"title":{"value":"x","isEncrypted":"yes"}}}"#)
        #expect(wrong.text("serverErrorCode") == "BAD_REQUEST")
    }

    // Tokens

    @Test(arguments: ["true", "True", "TRUE"])
    func `the zone's token comes with queries, batches and changes on request, in any letter case`(
        _ wanted: String
    ) async throws {
        let client = try await client()
        try await client.makeZone()
        let suffix = "?getCurrentSyncToken=\(wanted)&remapEnums=True"
        let record = #"{"operationType":"create","record":{"recordName":"a","recordType":"Note","fields":{}}}"#
        let saved = try await client.post(
            "records/modify" + suffix, #"{"zoneID":{"zoneName":"notes"},"operations":[\#(record)]}"#)
        let token = try #require(saved.object.text("syncToken"))
        try await client.subject.index("recordName", of: "Note")
        let query = #"{"zoneID":{"zoneName":"notes"},"query":{"recordType":"Note"}}"#
        #expect(try await client.post("records/query" + suffix, query).object.text("syncToken") == token)
        let batch = try await client.post("internal/records/query/batch" + suffix, #"{"batch":[\#(query)]}"#)
        #expect(batch.list("batch")[0].text("syncToken") == token)
        #expect(try await client.post("records/query?getCurrentSyncToken=False", query).object.text("syncToken") == nil)
        let changes = try await client.post("records/changes", #"{"zoneID":{"zoneName":"notes"},"syncToken":"\#(token)"}"#)
        #expect(changes.status == 200 && changes.list("records").isEmpty)
    }

    @Test func `tokens and markers are base 64, and lead through all pages`() async throws {
        let client = try await client()
        for zone in ["notes", "others"] {
            _ = try await client.post(
                "zones/modify", #"{"operations":[{"operationType":"create","zone":{"zoneID":{"zoneName":"\#(zone)"}}}]}"#)
            let records = (0..<7).map {
                #"{"operationType":"create","record":{"recordName":"\#(zone)\#($0)","recordType":"Note","fields":{}}}"#
            }
            let saved = try await client.post(
                "records/modify", #"{"zoneID":{"zoneName":"\#(zone)"},"operations":[\#(records.joined(separator: ","))]}"#)
            #expect(saved.status == 200)
        }
        try await client.subject.index("recordName", of: "Note")
        func isBase64(_ text: String) -> Bool { Data(base64Encoded: text).map { $0.base64EncodedString() == text } ?? false }

        for place in [#""zoneID":{"zoneName":"notes"}"#, #""zoneWide":true"#] {
            var (names, marker, pages): ([String], String?, Int) = ([], nil, 0)
            repeat {
                let more = marker.map { #","continuationMarker":"\#($0)""# } ?? ""
                let page = try await client.post(
                    "records/query", #"{\#(place),"resultsLimit":3,"query":{"recordType":"Note"}\#(more)}"#)
                names += page.list("records").compactMap { $0.text("recordName") }
                marker = page.object.text("continuationMarker")
                if let marker { #expect(isBase64(marker), "\(marker)") }
                pages += 1
            } while marker != nil && pages < 20
            #expect(Set(names).count == names.count && names.count == (place.contains("zoneWide") ? 14 : 7), "\(place)")
        }
        let zones = try await client.post("changes/database")
        #expect(isBase64(zones.object.text("syncToken") ?? "-"))
        let page = try await client.post("records/changes", #"{"zoneID":{"zoneName":"notes"},"resultsLimit":3}"#)
        #expect(isBase64(page.object.text("syncToken") ?? "-") && page.object.number("moreComing") == 1)
    }

    // Zones

    @Test func `a zone in a list has its token and says whether it is atomic`() async throws {
        let client = try await client()
        try await client.makeZone()
        let listed = try await client.post("zones/list")
        let found = try await client.post("zones/lookup", #"{"zones":[{"zoneName":"_defaultZone"},{"zoneName":"notes"}]}"#)
        for zones in [listed.list("zones"), found.list("zones")] {
            #expect(zones.map { $0.text("zoneID", "zoneName") } == ["_defaultZone", "notes"])
            #expect(zones.map { $0.number("atomic") } == [0, 1])
            #expect(zones[0].text("syncToken") == nil)
            let token = try #require(zones[1].text("syncToken"))
            try await client.modify("forceUpdate", record: #"{"recordName":"a","recordType":"Note","fields":{"n":{"value":1}}}"#)
            let changes = try await client.post("records/changes", #"{"zoneID":{"zoneName":"notes"},"syncToken":"\#(token)"}"#)
            #expect(changes.list("records").map { $0.text("recordName") } == ["a"])
        }
    }

    @Test func `the public default zone is found, and has an owner that requests may name`() async throws {
        let client = try await client().of("public")
        let before = try await client.post("zones/lookup", #"{"zones":[{"zoneName":"_defaultZone"}]}"#)
        let owner = try #require(before.list("zones")[0].text("zoneID", "ownerRecordName"))
        #expect(owner.first == "_" && owner.count == 33)
        let saved = try await client.post(
            "records/modify",
            #"{"zoneID":{"zoneName":"_defaultZone","ownerRecordName":"\#(owner)"},"operations":[{"operationType":"create","record":{"recordName":"p","recordType":"Place","fields":{}}}]}"#
        )
        #expect(saved.list("records")[0].text("zoneID", "ownerRecordName") == owner, "\(saved.object)")
        for answer in [
            try await client.post("zones/list"),
            try await client.post(
                "zones/lookup", #"{"zones":[{"zoneID":{"zoneName":"_defaultZone","ownerRecordName":"\#(owner)"}}]}"#),
        ] {
            #expect(answer.list("zones").map { $0.text("zoneID", "ownerRecordName") } == [owner])
            #expect(answer.list("zones").map { $0.text("zoneID", "zoneType") } == ["DEFAULT_ZONE"])
        }
        let found = try await client.post("records/lookup", #"{"records":[{"recordName":"p"}]}"#)
        #expect(found.list("records")[0].text("zoneID", "ownerRecordName") == owner)
    }

    // Queries

    @Test func `a query of an invalid type name is not found, and of an unknown type not queryable`() async throws {
        let client = try await client()
        try await client.makeZone()
        func reason(_ type: String, _ filter: String = "") async throws -> [String?] {
            let answer = try await client.post(
                "records/query", #"{"zoneID":{"zoneName":"notes"},"query":{"recordType":"\#(type)"\#(filter)}}"#)
            return [answer.object.text("serverErrorCode"), answer.object.text("reason")]
        }
        for type in ["9lives", "a b", "Zürich", ""] { #expect(try await reason(type)[0] == "NOT_FOUND", "\(type)") }
        let unqueryable = ["BAD_REQUEST", "Field 'recordName' is not marked queryable"]
        let byName =
            #","filterBy":[{"systemFieldName":"recordName","comparator":"EQUALS","fieldValue":{"value":{"recordName":"a"}}}]"#
        #expect(try await reason("Note") == unqueryable)
        #expect(try await reason("cloudkit.share") == unqueryable)
        #expect(try await reason("Note", byName) == unqueryable)
        try await client.modify("create", record: #"{"recordName":"a","recordType":"Note","fields":{}}"#)
        #expect(try await reason("Note") == unqueryable)
        #expect(try await reason("Note", byName) == unqueryable)
        try await client.subject.index("recordName", of: "Note")
        #expect(try await reason("Note", byName) == [nil, nil])
    }

    @Test func `the shared database refuses a query of all zones`() async throws {
        let client = try await client().of("shared")
        let query = #"{"zoneWide":true,"query":{"recordType":"Note"}}"#
        let answer = try await client.post("records/query", query)
        #expect(answer.status == 400 && answer.object.text("serverErrorCode") == "BAD_REQUEST")
        #expect(answer.object.text("reason")?.hasPrefix("SharedDB does not support Zone Wide queries") == true)
        let batch = try await client.post("internal/records/query/batch", #"{"batch":[\#(query)]}"#)
        #expect(batch.status == 400)
    }

    @Test func `a name with a NUL is refused, and a NUL elsewhere does not count as damage`() async throws {
        let client = try await client()
        try await client.makeZone()
        let refused = try await client.modify("create", record: #"{"recordName":"a\u0000b","recordType":"Note","fields":{}}"#)
        #expect(refused.text("serverErrorCode") == "BAD_REQUEST" && refused.text("reason")?.contains("NUL") == true)
        try await client.modify("create", record: #"{"recordName":"n","recordType":"Note","fields":{"t":{"value":"a\u0000b"}}}"#)
        let share = try await client.modify(
            "create", record: Self.shareRecord("s", of: "n").replacing("My notes", with: #"My\u0000notes"#))
        #expect(share.text("serverErrorCode") == nil, "\(share)")
        let found = try await client.post(
            "records/lookup", #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"n"},{"recordName":"s"}]}"#)
        #expect(found.list("records").map { $0.text("serverErrorCode") } == [nil, nil], "\(found.object)")
    }

    // Shares

    private static func shareRecord(_ name: String, of root: String) -> String {
        """
        {"recordName":"\(name)","recordType":"cloudkit.share","fields":{"cloudkit.title":{"value":"My notes"}},
        "forRecord":{"recordName":"\(root)"},"publicPermission":"NONE",
        "participants":[{"type":"USER","permission":"READ_WRITE","acceptanceStatus":"INVITED",
        "userIdentity":{"lookupInfo":{"emailAddress":"ben@example.org"}}}]}
        """
    }

    @Test func `a share has the name that its client gives it`() async throws {
        let client = try await client()
        try await client.makeZone()
        for name in ["n1", "n2"] {
            try await client.modify("create", record: #"{"recordName":"\#(name)","recordType":"Note","fields":{}}"#)
        }
        let made = try await client.modify("create", record: Self.shareRecord("my share", of: "n1"))
        #expect(made.text("recordName") == "my share", "\(made)")
        let root = try await client.post("records/lookup", #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"n1"}]}"#)
        #expect(root.list("records")[0].text("share", "recordName") == "my share")
        // The name of an existing record or share is refused, and nothing is shared.
        for taken in ["my share", "n2"] {
            let refused = try await client.modify("create", record: Self.shareRecord(taken, of: "n2"))
            #expect(refused.text("serverErrorCode") == "CONFLICT", "\(refused)")
        }
        for wrong in [String(repeating: "x", count: 256), "e\u{301}", "cloudkit.zoneshare"] {
            let refused = try await client.modify("create", record: Self.shareRecord(wrong, of: "n2"))
            #expect(refused.text("serverErrorCode") == "BAD_REQUEST", "\(refused)")
        }
        let gone = try await client.modify("forceDelete", record: #"{"recordName":"my share"}"#)
        #expect(gone.number("deleted") == 1, "\(gone)")
        let free = try await client.modify("create", record: Self.shareRecord("my share", of: "n2"))
        #expect(free.text("recordName") == "my share", "\(free)")
    }

    @Test func `an invitation that is resolved has what a client shows before it is accepted`() async throws {
        let anna = try await client()
        let ben = try await ProtocolClient(anna.subject, account: "ben@example.org")
        try await anna.makeZone()
        try await anna.modify(
            "create", record: #"{"recordName":"n1","recordType":"Note","fields":{"t":{"value":"Hello"},"u":{"value":"secret"}}}"#)
        let share = try await anna.modify("create", record: Self.shareRecord("s1", of: "n1"))
        let guid = try #require(share.text("shortGUID"))
        func resolve(_ client: ProtocolClient, _ more: String = "") async throws -> ProtocolClient.Object {
            try await client.of("public").post("records/resolve", #"{"shortGUIDs":[{"value":"\#(guid)"\#(more)}]}"#)
                .list("results")[0]
        }
        let invited = try await resolve(ben, #","shouldFetchRootRecord":true,"rootRecordDesiredKeys":["t"]"#)
        #expect(invited.text("share", "shortGUID") == guid && invited.text("shortGUID", "value") == guid)
        let created = try #require(invited.object("share", "created"))
        #expect(created.number("timestamp") != nil && created.text("userRecordName") == share.text("created", "userRecordName"))
        #expect(invited.object("share", "modified") != nil)
        #expect(invited.text("rootRecord", "recordName") == "n1")
        #expect(invited.object("rootRecord", "fields")?.keys.sorted() == ["t"])
        #expect(invited.text("ownerIdentity", "lookupInfo", "emailAddress") == "anna@example.org")
        let matches = (invited["potentialMatchList"] as? [any Sendable] ?? []).compactMap { $0 as? ProtocolClient.Object }
        #expect(matches.map { $0.text("contactInformation", "emailAddress") } == ["ben@example.org"])
        #expect(matches.map { $0.text("participantId") } == [invited.text("share", "currentUserParticipant", "participantId")])
        // The root record is returned on request.
        #expect(try await resolve(ben).object("rootRecord") == nil)
        // The owner does not match an invitation.
        let own = try await resolve(anna)
        #expect((own["potentialMatchList"] as? [any Sendable])?.isEmpty == true && own.text("databaseScope") == "PRIVATE")
        #expect(own.text("ownerIdentity", "lookupInfo", "emailAddress") == "anna@example.org")
        // A removed participant can't resolve the link.
        _ = try await ben.of("public").post("records/accept", #"{"shortGUIDs":[{"value":"\#(guid)"}]}"#)
        let tag = try await anna.post("records/lookup", #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"s1"}]}"#)
            .list("records")[0].text("recordChangeTag")
        let removed = try await anna.modify(
            "update",
            record:
                #"{"recordName":"s1","recordType":"cloudkit.share","recordChangeTag":"\#(tag ?? "")","publicPermission":"NONE","participants":[]}"#
        )
        #expect(removed.text("serverErrorCode") == nil, "\(removed)")
        let refused = try await resolve(ben, #","shouldFetchRootRecord":true"#)
        #expect(refused.text("serverErrorCode") == "NOT_FOUND" && refused.object("rootRecord") == nil)
    }

    @Test func `the holder of an open link to a public share learns no address`() async throws {
        let anna = try await client()
        let carla = try await ProtocolClient(anna.subject, account: "carla@example.org")
        try await anna.makeZone()
        try await anna.modify("create", record: #"{"recordName":"n1","recordType":"Note","fields":{}}"#)
        let share = try await anna.modify(
            "create",
            record: Self.shareRecord("s1", of: "n1").replacing(
                #""publicPermission":"NONE""#, with: #""publicPermission":"READ_ONLY""#)
        )
        let answer = try await carla.of("public").post(
            "records/resolve", #"{"shortGUIDs":[{"value":"\#(share.text("shortGUID") ?? "")","shouldFetchRootRecord":true}]}"#)
        let one = answer.list("results")[0]
        #expect(one.text("participantType") == "PUBLIC_USER" && one.text("rootRecord", "recordName") == "n1", "\(one)")
        #expect(!String(decoding: answer.bytes, as: UTF8.self).contains("@example.org"))
    }
}
