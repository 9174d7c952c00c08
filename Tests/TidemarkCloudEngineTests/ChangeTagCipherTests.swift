import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: tags and tokens show whether two are equal, but neither how many changes there were nor which came first. Method:
/// numbers encrypted and decrypted, under several keys; the published vector of the cipher; how much the texts of neighbouring
/// numbers differ; tags and tokens that an earlier version made with another cipher.
@Suite(.timeLimit(.minutes(30))) struct ChangeTagCipherTests {
    private let key = (0..<16).map { UInt8($0) }

    @Test func `numbers come back from their texts only with the same key`() {
        let (cipher, other) = (ChangeTagCipher(key), ChangeTagCipher(key.reversed()))
        for number in Array(0...1000) + [Int64.max, 1 << 40] {
            let text = cipher.text(number)
            #expect(cipher.number(text) == number)
            #expect(text.wholeMatch(of: /[A-Za-z0-9_-]{22}/) != nil)
            #expect(other.number(text) == nil)
        }
    }

    @Test func `an invented or altered text is no number`() throws {
        let cipher = ChangeTagCipher(key)
        for text in ["", "-1", "1", "zzzzzzzzzzzzzzzz", "1y2p0ij32e8e7", String(repeating: "A", count: 22), cipher.text(-1)] {
            #expect(cipher.number(text) == nil, "\(text)")
        }
        let bytes = try #require(Base64URL.bytes(cipher.text(77)))
        for bit in 0..<128 {
            var altered = bytes
            altered[bit / 8] ^= 1 << (bit % 8)
            #expect(cipher.number(Base64URL.text(altered)) == nil, "bit \(bit)")
        }
    }

    @Test func `the block cipher gives the published result of AES`() {
        // FIPS 197, appendix C.1: key 00 01 … 0f, block 00 11 … ff.
        let cipher = AESBlockCipher(key: key)
        let plain = (0..<16).map { UInt8($0 * 0x11) }
        var block = plain
        cipher.encrypt(&block)
        #expect(Hexadecimal.text(block) == "69c4e0d86a7b0430d8cdb78070b4c55a")
        cipher.decrypt(&block)
        #expect(block == plain)
    }

    @Test func `one cipher serves many threads`() async {
        let cipher = ChangeTagCipher(key)
        await withTaskGroup(of: Bool.self) { group in
            for start in 0..<8 as Range<Int64> {
                group.addTask { (0..<2000).allSatisfy { cipher.number(cipher.text(start * 2000 + $0)) == start * 2000 + $0 } }
            }
            for await isRight in group { #expect(isRight) }
        }
    }

    @Test func `the texts of neighbouring numbers differ in half of their bits`() throws {
        let cipher = ChangeTagCipher(key)
        let texts = try (1...2000).map { number in
            try #require(Base64URL.bytes(cipher.text(number))).reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
        }
        #expect(Set(texts).count == 2000)
        // On average 64 of the 128 bits differ between neighbours, and half of the texts are greater than the one before.
        let bits = zip(texts, texts.dropFirst()).map { ($0 ^ $1).nonzeroBitCount }
        #expect((63...65).contains(bits.reduce(0, +) / bits.count) && bits.min()! > 32)
        let rises = zip(texts, texts.dropFirst()).count { $0 < $1 }
        #expect((850...1150).contains(rises))
        #expect(cipher.digest("1.2") != cipher.digest("1.3") && cipher.digest("1.2") == cipher.digest("1.2"))
    }

    // Tags and tokens of earlier versions

    /// A tag of an earlier version: 64 bits in base 36.
    private let oldTag = "1y2p0ij32e8e7"
    private let zone = CloudZoneID("Journal")

    private func database(of cloud: EmbeddedCloud) async throws -> EmbeddedDatabase {
        let account = try await cloud.addAccount("anna@example.org").id
        let database = try cloud.database(.private, of: "journal", account: account)
        try await database.modifyZones(saving: [zone], deleting: [])
        return database
    }

    private func save(_ text: String, tag: String?, in database: EmbeddedDatabase) async throws -> RecordOutcome {
        let record = CloudRecord(CloudRecordID("a", in: zone), type: "Note", fields: ["text": .string(text)], changeTag: tag)
        return try await database.modify(ModifyRecordsRequest(zone: zone, operations: [.save(record)]))[0]
    }

    /// A token with the same content as an earlier version made it.
    private func old(_ token: CloudToken, _ database: EmbeddedDatabase, forged: Bool = false) throws -> CloudToken {
        let data = try #require(Data(base64Encoded: token.rawValue))
        let parts = String(decoding: data, as: UTF8.self).split(separator: ":", omittingEmptySubsequences: false)
        let text = "\(parts[0].dropLast())4:\(parts[1]):\(oldTag):\(parts[3])"
        let check = database.container.engine.changeTagCipher.digest("token " + text).prefix(20)
        return CloudToken(
            rawValue: Data("\(text):\(forged ? String(check.reversed()) : String(check))".utf8).base64EncodedString())
    }

    @Test func `a token of an earlier version has expired, and a forged one is invalid`() async throws {
        let scratch = try Scratch()
        let database = try await database(of: try EmbeddedCloud(at: scratch["cloud"]))
        _ = try await save("first", tag: nil, in: database)
        let page = try await database.zoneChanges(zone, since: nil, limit: nil, desiredKeys: nil)
        let zones = try await database.databaseChanges(since: nil, limit: nil)
        let (token, forged) = (try old(page.token, database), try old(page.token, database, forged: true))
        await #expect(throws: CloudError(.changeTokenExpired, "")) {
            try await database.zoneChanges(zone, since: token, limit: nil, desiredKeys: nil)
        }
        let other = try old(zones.token, database)
        await #expect(throws: CloudError(.changeTokenExpired, "")) {
            try await database.databaseChanges(since: other, limit: nil)
        }
        await #expect(throws: CloudError(.invalidArguments, "")) {
            try await database.zoneChanges(zone, since: forged, limit: nil, desiredKeys: nil)
        }
        // The database still has its data: the incarnation is the same.
        let again = try await database.zoneChanges(zone, since: page.token, limit: nil, desiredKeys: nil)
        #expect(again.incarnation == page.incarnation && again.changes.isEmpty)
    }

    @Test
    func `a tag of an earlier version is a conflict, and in a restored cloud the client has to fetch everything`() async throws {
        let scratch = try Scratch()
        let database = try await database(of: try EmbeddedCloud(at: scratch["cloud"]))
        _ = try await save("first", tag: nil, in: database)
        guard case .failed(let error) = try await save("second", tag: oldTag, in: database) else {
            throw CloudError(.internalError, "saved")
        }
        #expect(error.code == .serverRecordChanged && error.serverRecord?.fields["text"] == .string("first"))
        let tag = try #require(error.serverRecord?.changeTag)
        guard case .saved = try await save("second", tag: tag, in: database) else {
            throw CloudError(.internalError, "not saved")
        }

        _ = try CloudBackup(of: scratch["cloud"], to: scratch["backup"]).run()
        _ = try CloudRestoration(of: scratch["backup"], to: scratch["restored"]).run()
        let restored = try await self.database(of: try EmbeddedCloud(at: scratch["restored"]))
        await #expect(throws: CloudError(.changeTokenExpired, "")) { try await save("third", tag: oldTag, in: restored) }
        // A record that does not exist needs no fetching.
        let gone = CloudRecord(CloudRecordID("gone", in: zone), type: "Note", changeTag: oldTag)
        let outcome = try await restored.modify(ModifyRecordsRequest(zone: zone, operations: [RecordOperation(.delete, gone)]))[0]
        guard case .failed(let none) = outcome else { throw CloudError(.internalError, "\(outcome)") }
        #expect(none.code == .unknownItem)
    }
}
