import Testing

@testable import TidemarkModel

/// Goal: bytes are written as digits and read again, and other text is refused. Method: all bytes, sequences of several lengths,
/// and texts with one fault each.
@Suite(.timeLimit(.minutes(30))) struct HexadecimalTests {
    @Test func `each byte is written as two digits, and read again`() {
        for byte in 0...255 as ClosedRange<UInt8> {
            let text = Hexadecimal.text([byte])
            let digits = String(byte, radix: 16)
            #expect(text == (byte < 16 ? "0" : "") + digits)
            #expect(Hexadecimal.bytes(text) == [byte] && Hexadecimal.bytes(text.uppercased()) == [byte])
        }
        let bytes = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
        for count in 0...bytes.count { #expect(Hexadecimal.bytes(Hexadecimal.text(bytes[..<count])) == Array(bytes[..<count])) }
        #expect(Hexadecimal.text([0x00, 0x7f, 0xff]) == "007fff")
    }

    @Test(arguments: ["0", "abc", "0g", "g0", " 00", "0x00", "00 00", "-1", "é", "0\u{0}", "０0"])
    func `other text is refused`(text: String) {
        #expect(Hexadecimal.bytes(text) == nil)
        #expect(!Hexadecimal.isText(text, ofBytes: 1))
    }

    @Test func `a digest has lower-case digits, two for each byte`() {
        #expect(Hexadecimal.isText("09af", ofBytes: 2) && Hexadecimal.isText("", ofBytes: 0))
        for text in ["09AF", "09a", "09afa", "09af00", "09ag", "09a/", "09a:", "09a`"] {
            #expect(!Hexadecimal.isText(text, ofBytes: 2), "\(text)")
        }
    }
}
