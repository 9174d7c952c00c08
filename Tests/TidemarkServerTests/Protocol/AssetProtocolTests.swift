import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkServer

/// Goal: clients of CloudKit Web Services can upload and download contents, and no client gets another account's. Method: the
/// real server, contents of several pieces.
@Suite(.timeLimit(.minutes(30))) struct AssetProtocolTests {
    private static let content = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 7) }

    private func address(_ client: ProtocolClient, record: String = "a", field: String = "photo") async throws -> String {
        let answer = try await client.post(
            "assets/upload",
            #"{"zoneID":{"zoneName":"notes"},"tokens":[{"recordName":"\#(record)","recordType":"Note","fieldName":"\#(field)"}]}"#
        )
        return try #require(answer.list("tokens").first?.text("url"), "\(String(decoding: answer.bytes, as: UTF8.self))")
    }

    private func asset(_ answer: ProtocolClient.Answer, without: String? = nil) throws -> String {
        var file = try #require(answer.object.object("singleFile"), "\(String(decoding: answer.bytes, as: UTF8.self))")
        if let without { file[without] = nil }
        return String(decoding: try JSONSerialization.data(withJSONObject: file), as: UTF8.self)
    }

    private func started() async throws -> ProtocolClient {
        let client = try await ProtocolClient(.started(), account: "anna@example.org")
        try await client.makeZone()
        return client
    }

    @Test func `a content is uploaded raw or as a form's only part, and downloaded whole or in parts`() async throws {
        let client = try await started()
        let raw = try await client.send(.POST, url: address(client), Self.content)
        let form =
            Array("--xyz\r\nContent-Disposition: form-data; name=\"files\"; filename=\"file.file\"\r\n\r\n".utf8) + Self.content
            + Array("\r\n--xyz--\r\n".utf8)
        let parted = try await client.send(
            .POST, url: address(client), headers: [("Content-Type", "multipart/form-data; boundary=xyz")], form)
        #expect(raw.object.text("singleFile", "fileChecksum") == parted.object.text("singleFile", "fileChecksum"))
        #expect(raw.object.number("singleFile", "size") == Int64(Self.content.count))

        let saved = try await client.modify(
            "create", record: #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(asset(raw))}}}"#)
        #expect(saved.text("fields", "photo", "type") == "ASSETID")
        #expect(saved.text("fields", "photo", "value", "receipt") == nil)
        let url = try #require(saved.text("fields", "photo", "value", "downloadURL")).replacing("${f}", with: "a%20b.bin")
        let whole = try await client.send(.GET, url: url)
        #expect(whole.status == 200 && whole.bytes == Self.content)
        #expect(whole.headers.first(name: "content-type") == "application/octet-stream")
        let part = try await client.send(.GET, url: url, headers: [("Range", "bytes=4194300-4194310")])
        #expect(part.status == 206 && part.bytes == Array(Self.content[4_194_300...4_194_310]))
        #expect(part.headers.first(name: "content-range") == "bytes 4194300-4194310/5000000")
        let last = try await client.send(.GET, url: url, headers: [("Range", "bytes=-3")])
        #expect(last.bytes == Array(Self.content.suffix(3)))
        #expect(try await client.send(.GET, url: url, headers: [("Range", "bytes=5000000-")]).status == 416)
        let tag = try #require(whole.headers.first(name: "etag"))
        #expect(try await client.send(.GET, url: url, headers: [("If-None-Match", tag)]).status == 304)
        #expect(try await client.send(.GET, url: url + "x").status == 200)
        #expect(try await client.send(.GET, url: url.replacing("/download/", with: "/download/A")).status == 404)
    }

    @Test func `download addresses end with the session`() async throws {
        let client = try await started()
        let up = try await client.send(.POST, url: address(client), Array("small".utf8))
        let saved = try await client.modify(
            "create", record: #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(asset(up))}}}"#)
        let download = try #require(saved.text("fields", "photo", "value", "downloadURL")).replacing("${f}", with: "a.bin")
        let (upload, token) = (
            try await address(client, record: "b"),
            try await client.post(
                "/device/1/\(FaultyCloudFixture.container)/development/tokens/create", #"{"apnsEnvironment":"development"}"#)
        )
        let mailbox = try #require(token.object.text("webcourierURL"))
        #expect(try await client.send(.GET, url: download).bytes == Array("small".utf8))
        try await client.subject.access.endAllSessions()
        #expect(try await client.send(.GET, url: download).status == 403)
        #expect(try await client.send(.POST, url: upload, Array("small".utf8)).status == 403)
        #expect(try await client.send(.GET, url: mailbox).status == 404)
    }

    @Test func `an asset that is written back stays, and one that the record does not have is refused`() async throws {
        let client = try await started()
        let up = try await client.send(.POST, url: address(client), Array("small".utf8))
        let file = try asset(up)
        let saved = try await client.modify(
            "create", record: #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(file)}}}"#)
        let tag = try #require(saved.text("recordChangeTag"))
        let read = try asset(up, without: "receipt")
        let again = try await client.modify(
            "update",
            record:
                #"{"recordName":"a","recordType":"Note","recordChangeTag":"\#(tag)","fields":{"photo":{"value":\#(read)},"t":{"value":"x"}}}"#
        )
        #expect(again.text("serverErrorCode") == nil)
        #expect(again.text("fields", "photo", "value", "fileChecksum") == up.object.text("singleFile", "fileChecksum"))
        let stolen = try await client.modify(
            "create", record: #"{"recordName":"b","recordType":"Note","fields":{"photo":{"value":\#(read)}}}"#)
        #expect(stolen.text("serverErrorCode") == "BAD_REQUEST")
        #expect(stolen.text("reason")?.contains("bad upload receipt") == true)
        // With an address for the new record the save succeeds.
        let given = try await client.post(
            "assets/rereference",
            #"{"zoneID":{"zoneName":"notes"},"assets":[{"recordName":"a","fieldName":"photo"},{"recordName":"z","fieldName":"photo"}]}"#
        )
        #expect(given.list("assets").map { $0.text("serverErrorCode") } == [nil, "NOT_FOUND"])
        let named = String(decoding: try JSONSerialization.data(withJSONObject: given.list("assets")[0]), as: UTF8.self)
        let other = try await client.modify(
            "create", record: #"{"recordName":"b","recordType":"Note","fields":{"photo":{"value":\#(named)}}}"#)
        #expect(other.text("serverErrorCode") == nil)
    }

    @Test func `a record can't name a content that is missing in the cloud, until it is uploaded again`() async throws {
        let client = try await started()
        let bytes = Array("small".utf8)
        let up = try await client.send(.POST, url: address(client), bytes)
        let saved = try await client.modify(
            "create", record: #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(asset(up))}}}"#)
        let url = try #require(saved.text("fields", "photo", "value", "downloadURL")).replacing("${f}", with: "a.bin")
        let cloud = client.subject.fixture.directory
        let digest = AssetDigest.asset(of: Data(bytes)).digest
        let file = try #require(
            try FileManager.default.subpathsOfDirectory(atPath: cloud.path).first { $0.hasSuffix(digest) })
        try FileManager.default.removeItem(at: cloud.appendingPathComponent(file))
        let question = #"{"zoneID":{"zoneName":"notes"},"assets":[{"recordName":"a","fieldName":"photo"}]}"#
        let refused = try await client.post("assets/rereference", question)
        #expect(refused.list("assets").first?.text("receipt") == nil)
        #expect(refused.list("assets").first?.text("reason")?.contains("is missing in the cloud") == true)
        // A content that is uploaded again is there for the record that named it all the time.
        _ = try await client.send(.POST, url: address(client, record: "b"), bytes)
        #expect(try await client.send(.GET, url: url).bytes == bytes)
        let given = try await client.post("assets/rereference", question)
        #expect(given.list("assets").first?.text("receipt") != nil)
    }

    @Test func `a receipt is valid only for its account, field and content`() async throws {
        let client = try await started()
        let ben = try await ProtocolClient(client.subject, account: "ben@example.org")
        try await ben.makeZone()
        let up = try await client.send(.POST, url: address(client), Array("mine".utf8))
        let file = try asset(up)
        for (who, record) in [
            (ben, #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(file)}}}"#),
            (client, #"{"recordName":"a","recordType":"Note","fields":{"other":{"value":\#(file)}}}"#),
            (client, #"{"recordName":"a","recordType":"Place","fields":{"photo":{"value":\#(file)}}}"#),
            (
                client,
                #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(file.replacing("\"size\":4", with: "\"size\":5"))}}}"#
            ),
        ] {
            let answer = try await who.modify("create", record: record)
            #expect(answer.text("serverErrorCode") == "BAD_REQUEST")
            #expect(answer.text("reason")?.contains("bad upload receipt") == true)
        }
    }

    @Test func `an upload that is too large, cut off or sent to an altered address leaves nothing`() async throws {
        let client = try await started()
        let form = Array("--xyz\r\n\r\nhalf".utf8)
        let cut = try await client.send(
            .POST, url: address(client), headers: [("Content-Type", "multipart/form-data; boundary=xyz")], form)
        #expect(cut.status == 400)
        let large = try await client.send(.POST, url: address(client), [UInt8](repeating: 7, count: 50_000_001))
        #expect(large.status == 413 && large.object.text("serverErrorCode") == "QUOTA_EXCEEDED")
        let url = try await address(client)
        #expect(try await client.send(.POST, url: url.replacing("/upload/", with: "/upload/A"), [1]).status == 403)
        let incoming = client.subject.fixture.directory.appendingPathComponent("incoming").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: incoming).isEmpty)
    }

    @Test func `a removed participant can no longer use the addresses from before`() async throws {
        let client = try await started()
        let up = try await client.send(.POST, url: address(client), Array("shared".utf8))
        try await client.modify(
            "create", record: #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(asset(up))}}}"#)
        let share = try await client.modify(
            "create",
            record:
                #"{"recordType":"cloudkit.share","forRecord":{"recordName":"a"},"publicPermission":"READ_ONLY","fields":{"cloudkit.title":{"value":"One"}}}"#
        )
        let guid = try #require(share.text("shortGUID"))
        let ben = try await ProtocolClient(client.subject, account: "ben@example.org")
        let accepted = try await ben.of("public").post(
            "records/accept", #"{"shortGUIDs":[{"value":"\#(guid)","shouldFetchRootRecord":true}]}"#)
        let root = try #require(accepted.list("results").first?.object("rootRecord"))
        let owner = try #require(root.text("zoneID", "ownerRecordName"))
        let found = try await ben.of("shared").post(
            "records/lookup", #"{"zoneID":{"zoneName":"notes","ownerRecordName":"\#(owner)"},"records":[{"recordName":"a"}]}"#)
        let url = try #require(found.list("records")[0].text("fields", "photo", "value", "downloadURL"))
        #expect(try await ben.send(.GET, url: url).bytes == Array("shared".utf8))
        let stale = try await client.modify(
            "delete", record: #"{"recordName":"\#(share.text("recordName") ?? "")","recordChangeTag":"1"}"#)
        #expect(stale.text("serverErrorCode") == "CONFLICT")
        try await client.modify("forceDelete", record: #"{"recordName":"\#(share.text("recordName") ?? "")"}"#)
        #expect(try await ben.send(.GET, url: url).status != 200)
    }
}
