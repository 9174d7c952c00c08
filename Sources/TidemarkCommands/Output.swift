import Foundation
import TidemarkModel
import TidemarkTransfer

/// Prints the tool's output.
enum Output {
    /// Prints a line for people.
    static func line(_ text: String) throws { try write(Array(printable(text).utf8) + [0x0a]) }

    /// Prints a line for people on standard error.
    static func error(_ text: String) {
        // If standard error is closed, there is nowhere to report that.
        try? FileHandle.standardError.write(contentsOf: Array(printable(text).utf8) + [0x0a])
    }

    /// Prints a value as one JSON object.
    static func json(_ value: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try write(JSONString.escaping(try encoder.encode(value)) + [0x0a])
    }

    /// Prints bytes as they are.
    static func write(_ bytes: [UInt8]) throws(ImportError) {
        try FileHandle.standardOutput.write(all: bytes, "write to standard output")
    }

    /// Makes a text one line without characters that control a terminal. Stored texts, names of files and reasons may have such
    /// characters, because others have written them.
    static func printable(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isCommand) else { return text }
        return String(String.UnicodeScalarView(text.unicodeScalars.map { isCommand($0) ? " " : $0 }))
    }

    private static func isCommand(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // Control characters: C0, DEL, C1.
        case 0..<0x20, 0x7f..<0xa0: true
        // Characters that change the direction of text.
        case 0x202a...0x202e, 0x2066...0x2069: true
        default: false
        }
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

    /// Quotes a text so that a shell takes it as one word.
    static func shellWord(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-:".contains($0)) }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }

    static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
        "\(count(number)) \(number == 1 ? one : many ?? one + "s")"
    }

    /// The text of two counts: of containers, and of their environments. A container with two environments counts once.
    static func containers(_ count: Int, environments: Int) -> String {
        "\(self.count(count, "container")), \(self.count(environments, "environment"))"
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
