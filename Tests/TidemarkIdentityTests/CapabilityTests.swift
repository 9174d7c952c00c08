import Foundation
import GRDB
import TestSupport
import Testing
import TidemarkModel

@testable import TidemarkIdentity

/// Goal: a capability is valid for its purpose until it expires, and can't be forged. Method: every bit of some inverted, bytes
/// moved between purpose and payload, and random texts.
@Suite(.timeLimit(.minutes(30))) struct CapabilityTests {
    @Test func `a capability has its payload, for its purpose, until it expires`() async throws {
        let served = try await Served()
        for payload in [Data(), Data([0]), Data("journal/a".utf8), Data(repeating: 7, count: 5000)] {
            let text = served.credentials.signedText(payload, for: "upload", until: served.clock.now + 1)
            #expect(text.wholeMatch(of: /[A-Za-z0-9_-]+/) != nil)
            #expect(try served.credentials.open(text, for: "upload") == payload)
            #expect(try served.credentials.open(text, for: "download") == nil)
            #expect(try served.credentials.open(text, for: "") == nil)
            served.clock.advance(microseconds: 1)
            #expect(try served.credentials.open(text, for: "upload") == nil)
        }
    }

    @Test func `no bit of a capability can be altered, removed or added`() async throws {
        let served = try await Served()
        let text = served.credentials.signedText(Data("payload".utf8), for: "upload", until: .max)
        let bytes = try #require(Base64URL.bytes(text))
        for place in 0..<(bytes.count * 8) {
            var altered = bytes
            altered[place / 8] ^= 1 << UInt8(place % 8)
            #expect(try served.credentials.open(Base64URL.text(altered), for: "upload") == nil, "bit \(place)")
        }
        for count in 0..<bytes.count {
            #expect(try served.credentials.open(Base64URL.text(bytes[..<count]), for: "upload") == nil)
        }
        #expect(try served.credentials.open(Base64URL.text(bytes + [0]), for: "upload") == nil)
        #expect(try await Served().credentials.open(text, for: "upload") == nil)
    }

    @Test func `purpose and payload can't be confused, and a session is not a capability`() async throws {
        let served = try await Served()
        let text = served.credentials.signedText(Data("load".utf8), for: "up", until: .max)
        for purpose in ["u", "upload", "up\0", ""] { #expect(try served.credentials.open(text, for: purpose) == nil) }
        // Bytes of the payload are moved into the purpose, one after the other, and back.
        let bytes = try #require(Base64URL.bytes(text))
        for count in 1...4 {
            let moved = "up" + String(decoding: bytes[40..<(40 + count)], as: UTF8.self)
            #expect(try served.credentials.open(Base64URL.text(bytes[..<40] + bytes[(40 + count)...]), for: moved) == nil)
        }
        #expect(try served.credentials.open(Base64URL.text(bytes[..<40] + Array("up".utf8) + bytes[40...]), for: "") == nil)
        let token = try await served.session()
        #expect(try served.credentials.open(token.text, for: "session") == nil)
    }

    @Test
    func `texts signed while the file can't be read stay valid, and those shown meanwhile are not called altered`() async throws {
        let served = try await Served()
        let before = served.credentials.signedText(Data("a".utf8), for: "upload", until: .max)
        let queue = try DatabaseQueue(path: served.scratch["cloud/\(CredentialTables.file)"].path)
        let secret = try await queue.write { db in
            let secret = try Data.fetchOne(db, sql: "SELECT content FROM secrets WHERE name = 'secret'")
            try db.execute(sql: "UPDATE secrets SET content = x'00'; UPDATE counters SET revision = revision + 1")
            return secret
        }
        let meanwhile = served.credentials.signedText(Data("b".utf8), for: "upload", until: .max)
        let error = #expect(throws: CredentialError.self) { try served.credentials.open(before, for: "upload") }
        #expect(error?.code == .storage)
        try await queue.write { db in
            try db.execute(sql: "UPDATE secrets SET content = ?", arguments: [secret])
            try db.execute(sql: "UPDATE counters SET revision = revision + 1")
        }
        #expect(try served.credentials.open(before, for: "upload") == Data("a".utf8))
        #expect(try served.credentials.open(meanwhile, for: "upload") == Data("b".utf8))
    }

    @Test func `random texts open nothing`() async throws {
        let served = try await Served()
        var random = Randomness("texts for capabilities")
        for _ in 0..<3000 {
            let bytes = (0..<Int.random(in: 0...120, using: &random)).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            let text = Bool.random(using: &random) ? Base64URL.text(bytes) : String(decoding: bytes, as: UTF8.self)
            #expect(try served.credentials.open(text, for: "upload") == nil)
            #expect(try await served.failure(text) != nil)
        }
        #expect(try served.credentials.open(String(repeating: "A", count: 10_000_000), for: "upload") == nil)
    }

    @Test func `text and bytes lead to each other as in base64`() {
        var random = Randomness("bytes for base64")
        for count in 0..<200 {
            let bytes = (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) }
            let plain = Data(bytes).base64EncodedString()
            let text = Base64URL.text(bytes)
            #expect(text == plain.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""))
            #expect(Base64URL.bytes(text) == bytes && Base64URL.bytes(plain) == bytes)
        }
        for wrong in ["A", "AB", "AAB", "AAAAA", "A=A", "ä", "A.AA", "A\nAA"] where wrong != "AAA" {
            #expect(Base64URL.bytes(wrong) == nil, "\(wrong)")
        }
    }
}
