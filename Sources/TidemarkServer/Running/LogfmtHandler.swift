import Foundation
public import Logging
import TidemarkModel

/// Writes each log event as one line: `time=… level=info message="…" name=value`.
public struct LogfmtHandler: LogHandler {
    /// Values that every line has.
    public var metadata: Logger.Metadata = [:]
    /// Adds values of the present task to every line.
    public var metadataProvider: Logger.MetadataProvider?
    /// The lowest level that the logger writes.
    public var logLevel: Logger.Level
    private let put: @Sendable (String) -> Void

    /// Writes to standard error.
    public init(level: Logger.Level) {
        self.init(level: level) { line in
            // One call for each line, so that lines of several threads don't mix.
            var line = line
            line.withUTF8 { bytes in _ = Foundation.write(STDERR_FILENO, bytes.baseAddress, bytes.count) }
        }
    }

    init(level: Logger.Level, write: @escaping @Sendable (String) -> Void) {
        logLevel = level
        put = write
    }

    /// The value of one name in ``metadata``.
    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    /// Writes an event as one line.
    public func log(event: LogEvent) {
        var line = "time=\(Timestamp.text(microseconds: Timestamp.now(), decimals: 3)) level=\(event.level.rawValue) message="
        Self.append("\(event.message)", to: &line)
        let here = event.metadata ?? [:]
        var all = here
        for (name, value) in metadata where here[name] == nil { all[name] = value }
        for (name, value) in metadataProvider?.get() ?? [:] where all[name] == nil { all[name] = value }
        for (name, value) in all.sorted(by: { $0.key < $1.key }) {
            line += " \(name)="
            Self.append("\(value)", to: &line)
        }
        if let error = event.error {
            line += " error="
            Self.append("\(error)", to: &line)
        }
        put(line + "\n")
    }

    /// Adds a value, in quotation marks where it needs them, and never with the end of a line.
    private static func append(_ value: String, to line: inout String) {
        let isPlain =
            !value.isEmpty
            && value.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "=") }
        if isPlain {
            line += value
            return
        }
        line += "\""
        for character in value.unicodeScalars {
            switch character {
            case "\"", "\\":
                line += "\\"
                line.unicodeScalars.append(character)
            case "\n": line += "\\n"
            case "\r": line += "\\r"
            case _ where character.properties.generalCategory == .control: line += "?"
            default: line.unicodeScalars.append(character)
            }
        }
        line += "\""
    }
}
