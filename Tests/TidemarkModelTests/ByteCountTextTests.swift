import Testing

@testable import TidemarkModel

/// Goal: a number of bytes is read as people write it, and other text is refused. Method: each unit, and texts with one fault
/// each.
@Suite(.timeLimit(.minutes(30))) struct ByteCountTextTests {
    @Test(
        arguments: [
            ("0", 0), ("1234567", 1_234_567), ("64KiB", 65_536), ("1 MiB", 1 << 20), ("2GiB", 2 << 30), ("1TiB", 1 << 40),
            ("3kB", 3_000),
            ("500mb", 500_000_000), (" 5 GB ", 5_000_000_000), ("7TB", 7_000_000_000_000), ("9223372036854775807", .max),
        ] as [(String, Int64)])
    func `a whole number with a unit or without one is read`(text: String, bytes: Int64) {
        #expect(ByteCountText.bytes(text) == bytes && ByteCountText.limit(text) == bytes)
    }

    @Test(arguments: ["", "GB", "2.7MB", "2,7MB", "-1", "5 G B", "much", "5PB", "9223372036854775808", "9223373TB", "nones"])
    func `other text is refused`(text: String) {
        #expect(ByteCountText.bytes(text) == nil && ByteCountText.limit(text) == nil)
    }

    @Test func `the word none means no limit, and is no number of bytes`() {
        for text in ["none", "None", " NONE "] { #expect(ByteCountText.limit(text) == .max && ByteCountText.bytes(text) == nil) }
    }
}
