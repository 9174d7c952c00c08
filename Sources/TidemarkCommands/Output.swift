import Foundation

/// What the tool prints.
enum Output {
    static func line(_ text: String) { write(Array(text.utf8) + [0x0a], to: .standardOutput) }
    static func error(_ text: String) { write(Array(text.utf8) + [0x0a], to: .standardError) }
    static func bytes(_ bytes: [UInt8]) { write(bytes, to: .standardOutput) }

    /// Prints a value as one JSON object.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        write(Array(try encoder.encode(value)) + [0x0a], to: .standardOutput)
    }

    private static func write(_ bytes: [UInt8], to handle: FileHandle) {
        // Nobody is left to be told that standard output is gone.
        try? handle.write(contentsOf: bytes)
    }
}

/// Text for people.
enum Wording {
    /// 1234567 as "1,234,567".
    static func count(_ number: Int) -> String {
        let digits = Array(String(number.magnitude))
        var text = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += "," }
            text.append(digit)
        }
        return text
    }

    static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
        "\(count(number)) \(number == 1 ? one : many ?? one + "s")"
    }

    /// 1234567 as "1.2 MB".
    static func bytes(_ number: Int) -> String {
        var value = Double(number)
        for unit in ["bytes", "kB", "MB", "GB"] {
            if value < 1000 { return unit == "bytes" ? "\(number) bytes" : "\(rounded(value)) \(unit)" }
            value /= 1000
        }
        return "\(rounded(value)) TB"
    }

    static func duration(_ duration: Duration) -> String {
        let seconds = duration / .seconds(1)
        if seconds < 60 { return "\(rounded(seconds)) s" }
        return "\(Int(seconds) / 60) min \(Int(seconds) % 60) s"
    }

    private static func rounded(_ value: Double) -> String {
        value < 10 ? String(format: "%.1f", value) : String(format: "%.0f", value)
    }
}
