import Foundation
import Testing

@testable import TidemarkModel

/// Goal: encoded text is decoded to the same text and contains only safe characters, and malformed text is refused. Method: every
/// byte and random texts, with Foundation as the reference; texts with one fault each.
@Suite(.timeLimit(.minutes(30))) struct PercentCodingTests {
    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    @Test func `each character is encoded as Foundation encodes it`() throws {
        let scalars = (Array(0...0x250) + [0x2028, 0xffff, 0x1f600, 0x10ffff]).compactMap { Unicode.Scalar(UInt32($0)) }
        for scalar in scalars {
            let text = "a\(Character(scalar))z"
            let encoded = PercentCoding.encoded(text)
            #expect(encoded == text.addingPercentEncoding(withAllowedCharacters: Self.unreserved))
            #expect(PercentCoding.decoded(encoded) == text)
        }
        #expect(PercentCoding.encoded("a+b/ü=") == "a%2Bb%2F%C3%BC%3D")
        #expect(PercentCoding.encoded("/a b/ü%", keepsSlashes: true) == "/a%20b/%C3%BC%25")
        #expect(PercentCoding.decoded("a%2bb%2f%c3%bc") == "a+b/ü")
        #expect(PercentCoding.encoded("") == "" && PercentCoding.decoded("") == "")
    }

    @Test func `a plus sign is a space in forms only`() {
        #expect(PercentCoding.decoded("x+y%2B%20z") == "x+y+ z")
        #expect(PercentCoding.decoded("x+y%2B%20z", plusIsSpace: true) == "x y+ z")
        // A slice of a longer text is decoded up to its own end.
        let text = "a%41%42"
        #expect(PercentCoding.decoded(text.dropLast(3)) == "aA" && PercentCoding.decoded(text.dropLast(1)) == nil)
    }

    @Test(arguments: ["%", "a%", "%4", "%4g", "%g4", "%%41", "% 41", "%ff", "%c3", "%ed%a0%80", "%c0%af", "%f5%80%80%80"])
    func `malformed text is refused`(text: String) {
        #expect(PercentCoding.decoded(text) == nil)
        #expect(PercentCoding.decoded(text, plusIsSpace: true) == nil)
    }
}
