import Foundation

/// Numbers of bytes as people write them: `64KiB`, `500MB`, `5 GB`, `1234567`.
package enum ByteCountText {
    private static let units: [(name: String, bytes: Int64)] = [
        ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40),
        ("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("tb", 1_000_000_000_000), ("", 1),
    ]

    /// Returns the bytes of a whole number with a unit or none, in capitals or small letters.
    ///
    /// - Returns: `nil` for any other text, a negative number, and one of more than 64 bits.
    package static func bytes(_ text: String) -> Int64? {
        let text = text.trimmingCharacters(in: .whitespacesAndNewlines).lowercased()
        guard let unit = units.first(where: { text.hasSuffix($0.name) }),
            let number = Int64(text.dropLast(unit.name.count).trimmingCharacters(in: .whitespaces)), number >= 0
        else { return nil }
        let (bytes, isTooMuch) = number.multipliedReportingOverflow(by: unit.bytes)
        return isTooMuch ? nil : bytes
    }

    /// Returns the bytes of a limit: as ``bytes(_:)`` does, and `Int64.max` for the word `none`.
    package static func limit(_ text: String) -> Int64? {
        text.trimmingCharacters(in: .whitespacesAndNewlines).lowercased() == "none" ? .max : bytes(text)
    }
}
