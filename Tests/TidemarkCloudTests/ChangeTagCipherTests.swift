import TestSupport
import Testing

@testable import TidemarkCloudEngine
@testable import TidemarkEmbeddedCloud

/// Goal: tags and tokens tell equal from different, and neither how many changes there were nor which came first. Method: numbers there and
/// back, under several keys; a published vector of the cipher; and how the texts of neighbours differ.
@Suite(.timeLimit(.minutes(30))) struct ChangeTagCipherTests {
    private let key = (0..<16).map { UInt8($0) }

    @Test func `numbers come back, and only by their key`() {
        let (seal, other) = (ChangeTagCipher(key), ChangeTagCipher(key.reversed()))
        for number in Array(0...1000) + [Int64.max, 1 << 40] {
            #expect(seal.number(seal.text(number)) == number)
            #expect(other.number(seal.text(number)) != number)
        }
        #expect(seal.number("") == nil && seal.number("-1") == nil && seal.number("zzzzzzzzzzzzzzzz") == nil)
    }

    @Test func `it is the cipher that it says`() {
        // Key 00 01 … 0f, "ABCDEFGH".
        #expect(ChangeTagCipher(key).text(0x4142_4344_4546_4748) == String(0x497d_f3d0_7261_2cb5 as UInt64, radix: 36))
    }

    @Test func `neighbours have nothing in common`() {
        let seal = ChangeTagCipher(key)
        let texts = (1...2000).map { UInt64(seal.text($0), radix: 36)! }
        #expect(Set(texts).count == 2000)
        // Of 64 bits some 32 differ from one to the next; and half of them go up.
        let bits = zip(texts, texts.dropFirst()).map { ($0 ^ $1).nonzeroBitCount }
        #expect((31...33).contains(bits.reduce(0, +) / bits.count) && bits.min()! > 8)
        let rises = zip(texts, texts.dropFirst()).count { $0 < $1 }
        #expect((850...1150).contains(rises))
        #expect(seal.digest("1.2") != seal.digest("1.3") && seal.digest("1.2") == seal.digest("1.2"))
    }
}
