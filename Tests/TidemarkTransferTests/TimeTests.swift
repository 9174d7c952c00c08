import CTideManifest
import TestSupport
import Testing
import TidemarkModel

/// Goal: RFC 3339 times, and nothing else, are times. Method: known texts, and random moments written and read back.
@Suite struct TimeTests {
    private func parse(_ text: String) -> Int64? {
        var time: Int64 = 0
        let utf8 = Array(text.utf8CString)
        return tide_time_parse(utf8, utf8.count - 1, &time) ? time : nil
    }

    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2024-05-01T12:30:00+02:00", 1_714_559_400_000_000),
        ("2024-05-01 12:30:00z", 1_714_566_600_000_000),
        ("2024-02-29T23:59:60Z", 1_709_251_200_000_000), ("2000-01-01T00:00:00.1234567Z", 946_684_800_123_456),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000_000), ("2024-05-01T00:00:00-23:59", 1_714_607_940_000_000),
    ])
    func `a time is read to the microsecond`(text: String, expected: Int64) {
        #expect(parse(text) == expected)
    }

    @Test(arguments: [
        "", "2024-05-01", "2024-05-01T12:30:00", "2024-05-01T12:30Z", "2024-13-01T00:00:00Z", "2023-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z", "2024-05-01T24:00:00Z", "2024-05-01T12:60:00Z", "2024-05-01T12:30:61Z", "2024-05-01T12:30:00.Z",
        "2024-05-01T12:30:00+2:00", "2024-05-01T12:30:00+24:00", "2024-05-01T12:30:00Zx", "2024-05-01T12:30:00+02:00x",
        "20240501T123000Z00000", "2024-05-01T12:30:00.5",
    ])
    func `what is no RFC 3339 time is none`(text: String) {
        #expect(parse(text) == nil)
    }

    @Test func `what is written is read back`() {
        var random = Randomness("times")
        for _ in 0..<20_000 {
            let time = Int64.random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &random)
            #expect(parse(Timestamp.text(microseconds: time)) == time)
        }
    }
}
