import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkCloud
import TidemarkHTTP
import TidemarkModel

@testable import TidemarkServer

/// Goal: a server that signs addresses redirects only clients that may read a content to the bucket; a client that can't be
/// redirected gets the bytes. Method: the real server over a directory, whose contents a stub has as well, clients of CloudKit
/// Web Services, and our own.
@Suite(.timeLimit(.minutes(30))) struct SignedReadTests {
    private static let content = Data(AssetStorageContract.content(5000, 50))
    private static let asset = AssetDigest.asset(of: content)

    /// The server, and the stub to which it redirects.
    private struct Place {
        let served: ServedCloudSubject
        let bucket: StubServer
        /// The addresses that were signed.
        let made = Shared<[String]>([])
        let anna: ProtocolClient

        init() async throws {
            bucket = try StubServer { request, _ in SignedReadTests.reply(to: request) }
            let (port, made) = (bucket.port, self.made)
            served = try await ServedCloudSubject.started(assets: { folder in
                SigningAssetStorage(folder) { asset, owner in
                    let address = "http://127.0.0.1:\(port)/\(owner)/\(asset.digest)?X-Amz-Signature=0a1b"
                    made.change { $0.append(address) }
                    return address
                }
            })
            anna = try await ProtocolClient(served, account: "anna@example.org")
            try await anna.makeZone()
        }

        /// Saves a record with the content.
        ///
        /// - Returns: The address at which clients of CloudKit download it.
        func save() async throws -> String {
            let database = try await served.cloud("anna@example.org").database(.private)
            let (zone, content) = (CloudZoneID("notes"), SignedReadTests.content)
            _ = try await database.upload(content, of: SignedReadTests.asset, at: 0, in: zone)
            var record = CloudRecord(CloudRecordID("a", in: zone), type: "Note")
            record.fields["photo"] = .asset(SignedReadTests.asset)
            let outcomes = try await database.modify(
                ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.create, record)]))
            guard case .saved? = outcomes.first else { throw CloudError(.internalError, "\(outcomes)") }
            let found = try await anna.post(
                "records/lookup", #"{"zoneID":{"zoneName":"notes"},"records":[{"recordName":"a"}]}"#)
            return try #require(found.list("records").first?.text("fields", "photo", "value", "downloadURL"))
                .replacing("${f}", with: "a.bin")
        }
    }

    /// The bucket's answer.
    private static func reply(to request: StubServer.Request) -> StubServer.Reply {
        guard request.line.hasPrefix("GET /_"), request.line.contains("/\(asset.digest)?X-Amz-Signature=") else {
            return .json("", status: "403 Forbidden")
        }
        let ends = request.header("Range")?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) } ?? []
        guard ends.count == 2 else {
            return .bytes(Array("HTTP/1.1 200 OK\r\nContent-Length: \(content.count)\r\n\r\n".utf8) + Array(content))
        }
        let part = content[ends[0]...min(ends[1], content.count - 1)]
        let head = [
            "HTTP/1.1 206 Partial Content", "Content-Length: \(part.count)",
            "Content-Range: bytes \(ends[0])-\(ends[0] + part.count - 1)/\(content.count)",
        ]
        return .bytes(Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + Array(part))
    }

    private static let own =
        "/tidemark/1/\(FaultyCloudFixture.container)/development/private/assets/\(asset.digest)-\(asset.size)?zone=notes"

    @Test func `a client that may read a content is redirected to its address, and the redirect is not cached`() async throws {
        let place = try await Place()
        let url = try await place.save()
        let answers = [
            try await place.anna.send(.GET, url: url), try await place.anna.get(Self.own),
            try await place.anna.send(.GET, url: url, headers: [("Range", "bytes=10-19")]),
            try await place.anna.send(.GET, url: url, headers: [("If-None-Match", "\"another\"")]),
        ]
        #expect(place.made.value.count == answers.count)
        for (answer, address) in zip(answers, place.made.value) {
            #expect(answer.status == 307 && answer.bytes.isEmpty)
            #expect(answer.headers["location"] == [address])
            #expect(answer.headers["cache-control"] == ["no-store"])
            #expect(answer.headers["referrer-policy"] == ["no-referrer"])
            #expect(answer.headers["etag"] == [])
            // The bucket learns neither the session nor the address that was requested.
            let token = try #require(place.anna.token)
            #expect(!answer.headers.contains { $0.value.contains(token) })
        }
        #expect(place.bucket.requests.isEmpty)
    }

    @Test func `HEAD, a page of another origin and If-Range are answered by the server`() async throws {
        let place = try await Place()
        let url = try await place.save()
        let tag = "\"\(Self.asset.digest)\""
        let head = try await place.anna.send(.HEAD, url: url)
        #expect(head.status == 200 && head.headers["content-length"] == ["5000"])
        let page = try await place.anna.send(.GET, url: url, headers: [("Origin", "https://app.example.org")])
        #expect(page.status == 200 && page.bytes == Array(Self.content))
        let resumed = try await place.anna.send(.GET, url: url, headers: [("Range", "bytes=10-19"), ("If-Range", tag)])
        #expect(resumed.status == 206 && resumed.bytes == Array(Self.content[10..<20]))
        #expect(place.made.value.isEmpty)
        #expect(try await place.anna.send(.GET, url: url, headers: [("Range", "bytes=5000-")]).status == 416)
        let known = try await place.anna.send(.GET, url: url, headers: [("If-None-Match", tag)])
        #expect(known.status == 304 && known.headers["location"] == [])
        #expect(place.bucket.requests.isEmpty)
    }

    @Test func `a client that may not read a content does not learn its address`() async throws {
        let place = try await Place()
        let url = try await place.save()
        let ben = try await ProtocolClient(place.served, account: "ben@example.org")
        try await ben.makeZone()
        let nobody = try await ProtocolClient(place.served, account: nil)
        let other = CloudAsset(digest: AssetDigest.asset(of: Data([1])).digest, size: 1)
        let answers = [
            // Another account's content, and a client without an account.
            try await ben.get(Self.own), try await nobody.get(Self.own),
            // A content that no record names, and a wrong size.
            try await place.anna.get(Self.own.replacing("\(Self.asset.digest)-5000", with: "\(other.digest)-1")),
            try await place.anna.get(Self.own.replacing("-5000?", with: "-4999?")),
            try await place.anna.send(.GET, url: url.replacing("/download/", with: "/download/A")),
        ]
        for answer in answers { #expect((400..<500).contains(answer.status) && answer.headers["location"] == [], "\(answer)") }
        try await place.anna.modify("forceDelete", record: #"{"recordName":"a"}"#)
        let gone = try await place.anna.send(.GET, url: url, headers: [("If-None-Match", "\"\(Self.asset.digest)\"")])
        #expect((400..<500).contains(gone.status), "\(gone)")
        try await place.served.access.endAllSessions()
        #expect(try await place.anna.send(.GET, url: url).status == 403)
        #expect(place.made.value == [])
    }

    @Test func `our client follows the redirect to a content, and reads it in pieces`() async throws {
        let place = try await Place()
        _ = try await place.save()
        let database = try await place.served.cloud("anna@example.org").database(.private)
        var read = Data()
        while read.count < Self.content.count {
            read += try await database.download(
                Self.asset, in: CloudZoneID("notes"), from: Int64(read.count), count: 2000)
        }
        #expect(read == Self.content)
        #expect(place.bucket.requests.map { $0.header("Range") } == ["bytes=0-1999", "bytes=2000-3999", "bytes=4000-5999"])
        #expect(place.bucket.requests.allSatisfy { $0.header("Authorization") == nil })
        #expect(place.made.value.count == 3)
        // A request behind the end is not redirected.
        #expect(try await database.download(Self.asset, in: CloudZoneID("notes"), from: 5000, count: 1).isEmpty)
        #expect(place.bucket.requests.count == 3)
    }
}
