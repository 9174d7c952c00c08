import Foundation
import NIOCore
import NIOPosix
import TestSupport
import Testing
import TidemarkCloud
import TidemarkCloudEngine
import TidemarkEmbeddedCloud
import TidemarkModel

@testable import TidemarkServer

/// Goal: an upload is stored only if it is whole and has room, and does not hinder others. Method: the real server, requests that
/// end early, claim too much or come at the same time; and the counter of uploads as a value.
@Suite(.timeLimit(.minutes(30))) struct UploadTests {
    private static let content = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 9) }

    private func started() async throws -> ProtocolClient {
        let client = try await ProtocolClient(.started(), account: "anna@example.org")
        try await client.makeZone()
        return client
    }

    /// An address for uploading a content; in the zone `notes`, or in a zone that is given as JSON.
    private func address(_ client: ProtocolClient, zone: String = #"{"zoneName":"notes"}"#) async throws -> String {
        let answer = try await client.post(
            "assets/upload",
            #"{"zoneID":\#(zone),"tokens":[{"recordName":"a","recordType":"Note","fieldName":"photo"}]}"#)
        return try #require(answer.list("tokens").first?.text("url"), "\(String(decoding: answer.bytes, as: UTF8.self))")
    }

    private func place(_ url: String) throws -> (path: String, port: Int) {
        let parts = try #require(URLComponents(string: url))
        return (parts.path, try #require(parts.port))
    }

    private func incoming(_ client: ProtocolClient) throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            atPath: client.subject.fixture.directory.appendingPathComponent("incoming").path)
    }

    private func used(_ client: ProtocolClient) async throws -> Int64? {
        let id = try await client.subject.fixture.id("anna@example.org")
        return try await client.subject.fixture.cloud.database(.private, of: FaultyCloudFixture.container, account: id).account()
            .used
    }

    /// Sends a text and ends the sending side; returns the answer up to the end of the connection.
    private func answer(toAllOf text: String, port: Int) async throws -> String {
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(ChannelOptions.allowRemoteHalfClosure, value: true)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
                }
            }
        return try await channel.executeThenClose { inbound, outbound in
            try await outbound.write(ByteBuffer(string: text))
            outbound.finish()
            var answer = ""
            do {
                for try await piece in inbound { answer += String(buffer: piece) }
            } catch {
                // The server has closed the connection without reading everything.
            }
            return answer
        }
    }

    @Test func `an upload that is cut short leaves nothing and gives no receipt`() async throws {
        let client = try await started()
        let url = try await address(client)
        let (path, port) = try place(url)
        let answer = try await answer(
            toAllOf: "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", port: port)
        #expect(!answer.contains("receipt") && !answer.contains("200 OK"), "\(answer)")
        // The cut upload has ended once the address accepts another one.
        var again = try await client.send(.POST, url: url, Array("whole".utf8))
        while again.status == 429 { again = try await client.send(.POST, url: url, Array("whole".utf8)) }
        #expect(again.status == 200)
        #expect(try incoming(client).isEmpty)
        #expect(try await used(client) == 5 + StoredUpload.overhead)
    }

    @Test func `a raw upload needs a length, and a form does not`() async throws {
        let client = try await started()
        let (path, port) = try place(try await address(client))
        let raw = try await RawConnection(port: port)
        try await raw.write("POST \(path) HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n\r\n")
        try await raw.receive("HTTP/1.1 411 ")
        try await raw.close()
        let (form, content) = (try await RawConnection(port: port), "--x\r\n\r\nwhole\r\n--x--\r\n")
        try await form.write(
            "POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=x\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "\(String(content.utf8.count, radix: 16))\r\n\(content)\r\n0\r\n\r\n")
        try await form.receive("receipt")
        try await form.close()
        #expect(try await used(client) == 5 + StoredUpload.overhead)
    }

    @Test func `the same content can be uploaded twice at once`() async throws {
        let client = try await started()
        let ben = try await ProtocolClient(client.subject, account: "ben@example.org")
        let pairs = [
            (client, client, #"{"zoneName":"notes"}"#),
            (client.of("public"), ben.of("public"), #"{"zoneName":"_defaultZone"}"#),
        ]
        for (one, other, zone) in pairs {
            let addresses = (try await address(one, zone: zone), try await address(other, zone: zone))
            async let first = one.send(.POST, url: addresses.0, Self.content)
            async let second = other.send(.POST, url: addresses.1, Self.content)
            let answers = try await [first, second]
            #expect(answers.map(\.status) == [200, 200])
            #expect(Set(answers.compactMap { $0.object.text("singleFile", "fileChecksum") }).count == 1)
        }
        #expect(try incoming(client).isEmpty)
        // The first account that uploads a public content pays for it.
        let one = Int64(Self.content.count) + StoredUpload.overhead
        let counted = try #require(try await used(client))
        #expect([one, 2 * one].contains(counted))
        // The received content is the one that was sent.
        let up = try await client.send(.POST, url: address(client), Self.content)
        let file = try #require(up.object.object("singleFile"))
        let json = String(decoding: try JSONSerialization.data(withJSONObject: file), as: UTF8.self)
        let saved = try await client.modify(
            "create", record: #"{"recordName":"a","recordType":"Note","fields":{"photo":{"value":\#(json)}}}"#)
        let url = try #require(saved.text("fields", "photo", "value", "downloadURL")).replacing("${f}", with: "a.bin")
        #expect(try await client.send(.GET, url: url).bytes == Self.content)
    }

    @Test func `an upload to a full account is refused before its body`() async throws {
        let client = try await started()
        let (path, port) = try place(try await address(client))
        try await client.subject.fixture.setQuota(1_000, of: "anna@example.org")
        let connection = try await RawConnection(port: port)
        try await connection.write("POST \(path) HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n")
        try await connection.receive("QUOTA_EXCEEDED")
        #expect(try incoming(client).isEmpty)
        try await connection.close()
    }

    @Test func `an upload address is valid as long as its account`() async throws {
        let client = try await started()
        let url = try await address(client)
        try await client.subject.fixture.setStatus(.noAccount, of: "anna@example.org")
        let answer = try await client.send(.POST, url: url, [1])
        #expect(answer.object.text("serverErrorCode") == "AUTHENTICATION_REQUIRED")
        #expect(try incoming(client).isEmpty)
    }

    @Test func `another owner's zone, or a long name, gets no upload address`() async throws {
        let client = try await started()
        let long = String(repeating: "x", count: 10_000)
        for client in [client, client.of("public")] {
            for (path, list) in [
                ("assets/upload", #""tokens":[{"recordName":"a","recordType":"Note","fieldName":"photo"}]"#),
                ("assets/rereference", #""assets":[{"recordName":"a","fieldName":"photo"}]"#),
            ] {
                let foreign = try await client.post(
                    path, #"{"zoneID":{"zoneName":"_defaultZone","ownerRecordName":"_somebody"},\#(list)}"#)
                #expect(foreign.object.text("serverErrorCode") == "ZONE_NOT_FOUND")
                let named = try await client.post(
                    path, #"{"zoneID":{"zoneName":"_defaultZone","ownerRecordName":"\#(long)"},\#(list)}"#)
                #expect(named.status == 400 && named.object.text("serverErrorCode") == "BAD_REQUEST")
                #expect(named.object.text("reason")?.contains("ownerRecordName") == true)
                let field = try await client.post(path, "{\(list.replacing("photo", with: long))}")
                #expect(field.status == 400)
                #expect(field.object.text("reason")?.contains("fieldName") == true)
            }
        }
    }

    @Test func `a compressed content is refused`() async throws {
        let client = try await started()
        let url = try await address(client)
        let packed = try await client.send(.POST, url: url, headers: [("Content-Encoding", "gzip")], [1])
        #expect(packed.status == 415 && packed.object.text("serverErrorCode") == "BAD_REQUEST")
        #expect(try await client.send(.POST, url: url, headers: [("Content-Encoding", "identity")], [1]).status == 200)
    }

    @Test func `the number of uploads at once is limited, for each account and in all`() throws {
        let folder = URL(fileURLWithPath: "/\(UUID().uuidString)")
        let own = (0..<RunningUpload.mostOfAccount).map { RunningUpload(folder: folder, account: "anna", address: "\($0)") }
        for upload in own { try upload.begin() }
        let more = RunningUpload(folder: folder, account: "anna", address: "more")
        #expect(throws: CloudError(.requestRateLimited, "")) { try more.begin() }
        own[0].end()
        #expect(throws: CloudError(.requestRateLimited, "")) { try own[1].begin() }
        try more.begin()
        let others = (own.count..<RunningUpload.most).map { RunningUpload(folder: folder, account: "\($0)", address: "\($0)") }
        for upload in others { try upload.begin() }
        #expect(throws: CloudError(.serviceUnavailable, "")) {
            try RunningUpload(folder: folder, account: "ben", address: "ben").begin()
        }
        for upload in own + [more] + others { upload.end() }
        try own[0].begin()
        own[0].end()
    }
}
