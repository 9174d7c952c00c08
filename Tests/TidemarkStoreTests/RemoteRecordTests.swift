import Foundation
import Testing
import TidemarkModel

@testable import TidemarkStore

/// Goal: the store accepts exactly those values from a cloud that it can hold. Method: records with values and names at the
/// limits, and the rule alone.
@Suite(.timeLimit(.minutes(30))) struct RemoteRecordTests {
    private func isStorable(_ value: FieldValue, name: String = "senja") -> Bool {
        RemoteRecord(
            name: name, type: "Destination", tag: "1", values: ["rating": .int64(1), "field": value], edited: nil,
            whole: { Data() }
        ).isStorable
    }

    @Test func `a value has at most 16 MB in the text that the store has of it`() {
        let most = 16 << 20
        let (longest, tooLong) = (String(repeating: "c", count: most), String(repeating: "c", count: most + 1))
        let texts: [@Sendable (String) -> FieldValue] = [{ .string($0) }, { .reference($0) }, { .asset($0) }]
        for value in texts { #expect(isStorable(value(longest)) && !isStorable(value(tooLong))) }
        #expect(
            isStorable(.bytes([UInt8](repeating: 1, count: most))) && !isStorable(.bytes([UInt8](repeating: 1, count: most + 1))))
        // The text of a list has brackets and quotation marks.
        func list(_ length: Int) -> FieldValue { .list([.string(String(repeating: "c", count: length - 4))], of: .string) }
        #expect(isStorable(list(most)) && !isStorable(list(most + 1)))
    }

    @Test func `a text may not contain NUL, and a number must be a number`() {
        for value in [
            FieldValue.string("a\0b"), .reference("\0"), .asset("a\0"), .double(.infinity), .double(-.infinity), .double(.nan),
        ] {
            #expect(!isStorable(value), "\(value)")
        }
        for value in [FieldValue.string(""), .double(-0.0), .timestamp(.min), .int64(.max), .list([], of: .string)] {
            #expect(isStorable(value), "\(value)")
        }
    }

    @Test func `a name has 1 to 255 bytes, none of them a control character`() {
        for name in ["a", " ", "\u{10FFFF}", String(repeating: "a", count: 255), String(repeating: "é", count: 127)] {
            #expect(isStorable(.int64(1), name: name), "\(name)")
        }
        for name in [
            "", "a\u{1F}", "\u{7F}", "\0", String(repeating: "a", count: 256), String(repeating: "é", count: 128), "\n",
        ] {
            #expect(!isStorable(.int64(1), name: name), "\(name)")
        }
    }

    @Test func `the last edit of several changes is the latest edit of any field in any record`() {
        func saved(_ edited: EditTimes?) -> RemoteChange {
            .saved(RemoteRecord(name: "a", type: "Destination", tag: "1", values: [:], edited: edited, whole: { Data() }))
        }
        func time(_ microseconds: Int64) -> EditTime { EditTime(microseconds: microseconds, device: "a") }
        let together = EditTimes(otherwise: time(5))
        let latest = EditTimes(otherwise: time(3), fields: ["caption": time(9), "rating": time(4)])
        #expect([saved(together), saved(together)].latestEdit == 5)
        #expect(
            [saved(together), .deleted(name: "b"), saved(latest), saved(nil), saved(EditTimes()), saved(together)].latestEdit == 9
        )
        #expect([saved(nil), .deleted(name: "b"), saved(EditTimes())].latestEdit == nil)
        guard case .saved(let record) = saved(nil) else {
            Issue.record("it is no saved record")
            return
        }
        // By default a record is complete.
        #expect(!record.isPartial && !record.lacksAssets)
    }
}
