import Foundation
import NIOHTTP1
import Synchronization
import Testing

@testable import webjournal

/// Goal: the memory of uploads is bounded. Method: pictures whose making waits for the test.
@Suite(.timeLimit(.minutes(30))) struct UploadTests {
    @Test func `an upload keeps its turn until its picture is made`() async throws {
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (released, release) = AsyncStream.makeStream(of: Void.self)
        let makePhoto: @Sendable (Data) async throws -> Photo = { data in
            begin.yield()
            for await _ in released { break }
            return try await Photo(data: data)
        }
        func configure(_ site: inout Site) { site.makePhoto = makePhoto }
        try await TestSite.run(configure) { site in
            let ada = try await site.browser(of: "ada@example.org")
            _ = try await ada.get("/destinations/new")
            let photo = try TestSite.picture("reine.jpg")
            async let first = ada.post("/destinations", ["caption": "Reine"], photo: photo)
            async let second = ada.post("/destinations", ["caption": "Reine again"], photo: photo)
            var count = 0
            for await _ in begun {
                count += 1
                if count == 2 { break }
            }
            let third = try await ada.post("/destinations", ["caption": "Too many"], photo: photo)
            #expect(third.status == .serviceUnavailable && third.text.contains("Several photos are just coming in."))
            release.finish()
            #expect(try await first.status == .seeOther)
            #expect(try await second.status == .seeOther)
            // The turns are given back.
            #expect(try await ada.post("/destinations", ["caption": "Later"], photo: photo).status == .seeOther)
        }
    }

    @Test func `the parts of a body are where they are in it`() throws {
        let body =
            Data("..--X\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\none\r\n--X\r\n".utf8)
            + Data("Content-Disposition: form-data; name=\"f\"; filename=\"x\"\r\n\r\n\r\n--Y\r\n\r\n--X--\r\n".utf8)
        let parts = try Multipart.parts(of: body.dropFirst(2), boundary: "X")
        #expect(parts.map(\.name) == ["a", "f"] && parts.map(\.isFile) == [false, true])
        #expect(parts.map { String(decoding: $0.content, as: UTF8.self) } == ["one", "\r\n--Y\r\n"])
        let late = try Multipart.parts(of: Data("before\r\n".utf8) + body.dropFirst(2), boundary: "X")
        #expect(late.map(\.content) == parts.map(\.content))
        #expect(throws: PageError.self) { try Multipart.parts(of: body, boundary: "Z") }
    }
}
