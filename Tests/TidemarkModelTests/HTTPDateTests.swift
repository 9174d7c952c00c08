import Foundation
import Testing

@testable import TidemarkModel

/// Goal: times are written in the forms of HTTP and RFC 3339. Method: published examples, and Foundation as the reference over
/// days of several centuries.
@Suite(.timeLimit(.minutes(30))) struct HTTPDateTests {
    private func formatter(_ format: String) -> DateFormatter {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = .gmt
        formatter.dateFormat = format
        return formatter
    }

    @Test func `headers have dates in the form of RFC 9110`() {
        #expect(HTTPDate.text(second: 784_111_777) == "Sun, 06 Nov 1994 08:49:37 GMT")
        #expect(HTTPDate.text(second: 0) == "Thu, 01 Jan 1970 00:00:00 GMT")
        #expect(HTTPDate.text(second: -1) == "Wed, 31 Dec 1969 23:59:59 GMT")
        #expect(HTTPDate.text(second: 951_782_400) == "Tue, 29 Feb 2000 00:00:00 GMT")
        let reference = formatter("EEE, dd MMM yyyy HH:mm:ss 'GMT'")
        // From 1600, when Foundation's calendar is Gregorian, to 2400; in steps that are not whole days.
        for second in stride(from: -11_676_096_000 as Int64, to: 13_569_465_600, by: 5_000_011) {
            #expect(HTTPDate.text(second: second) == reference.string(from: Date(timeIntervalSince1970: Double(second))))
        }
    }

    @Test func `the times of a log all have the same number of decimals`() {
        #expect(Timestamp.text(microseconds: 1_763_712_000_123_456, decimals: 3) == "2025-11-21T08:00:00.123Z")
        #expect(Timestamp.text(microseconds: 1_763_712_000_000_000, decimals: 3) == "2025-11-21T08:00:00.000Z")
        #expect(Timestamp.text(microseconds: 1_763_712_000_999_999, decimals: 0) == "2025-11-21T08:00:00Z")
        #expect(Timestamp.text(microseconds: -1, decimals: 6) == "1969-12-31T23:59:59.999999Z")
        #expect(Timestamp.text(microseconds: -1_000) == "1969-12-31T23:59:59.999Z")
    }
}
