import Testing
import TidemarkModel

/// Goal: authentication codes are those of the standard. Method: the cases 2 and 6 of RFC 4231, with a short key and one that is
/// longer than a block.
@Suite(.timeLimit(.minutes(30))) struct HMACSHA256Tests {
    @Test(arguments: [
        (
            Array("Jefe".utf8), "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            [UInt8](repeating: 0xaa, count: 131), "Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
    ])
    func `a code is that of RFC 4231`(key: [UInt8], text: String, code: String) {
        #expect(Hexadecimal.text(HMACSHA256.code(of: Array(text.utf8), key: key)) == code)
    }
}
