import ArgumentParser
import Foundation

/// A number of bytes on the command line, such as 64KiB or 500MB.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int64

    private static let units: [(String, Int64)] = [
        ("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("tib", 1 << 40),
        ("kb", 1_000), ("mb", 1_000_000), ("gb", 1_000_000_000), ("tb", 1_000_000_000_000), ("", 1),
    ]

    init?(argument: String) {
        let text = argument.lowercased()
        guard let (unit, factor) = Self.units.first(where: { text.hasSuffix($0.0) }),
            let number = Int64(text.dropLast(unit.count).trimmingCharacters(in: .whitespaces)), number >= 0
        else { return nil }
        let (product, isTooMuch) = number.multipliedReportingOverflow(by: factor)
        guard !isTooMuch else { return nil }
        bytes = product
    }
}
