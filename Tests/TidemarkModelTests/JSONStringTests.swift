import Foundation
import Testing

@testable import TidemarkModel

/// Goal: JSON output has no control characters of terminals, at any position. Method: each such character, and some that stay, at
/// each place among others; Foundation reads what is written.
@Suite(.timeLimit(.minutes(30))) struct JSONStringTests {
    private func written(_ text: String) -> [UInt8] {
        var out: [UInt8] = []
        JSONString.append(text, to: &out)
        return out
    }

    private static func isEscaped(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x22, 0x5c, 0x7f...0x9f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    @Test func `a character is escaped or kept in the same way at every position`() throws {
        let scalars = (Array(0...0x250) + Array(0x2020...0x2070) + [0xd7ff, 0xe000, 0xffff, 0x1f600, 0x10ffff])
            .compactMap { Unicode.Scalar(UInt32($0)) }
        for scalar in scalars {
            for place in 0..<18 {
                let (before, behind) = (String(repeating: "a", count: place), String(repeating: "z", count: 17 - place))
                let text = before + String(Character(scalar)) + behind
                let bytes = written(text)
                #expect(try JSONDecoder().decode(String.self, from: Data(bytes)) == text)
                let isEscaped = String(decoding: bytes, as: UTF8.self) != "\"" + text + "\""
                #expect(isEscaped == Self.isEscaped(scalar), "U+\(String(scalar.value, radix: 16)) at \(place)")
            }
        }
    }
}
