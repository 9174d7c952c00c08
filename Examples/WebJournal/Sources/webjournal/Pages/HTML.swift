/// A piece of a page. A literal is taken as it is, and each text that it interpolates is escaped, for text and for attributes in quotation
/// marks: no text becomes markup.
///
/// ```swift
/// let title: HTML = "<h1>\(destination.caption)</h1>"
/// ```
struct HTML: ExpressibleByStringInterpolation, Sendable {
    private(set) var text: String

    init(stringLiteral text: String) { self.text = text }
    init(stringInterpolation parts: Parts) { text = parts.text }

    static let none: HTML = ""

    static func + (left: HTML, right: HTML) -> HTML { "\(left)\(right)" }

    /// A piece for a condition.
    static func when(_ condition: Bool, _ piece: @autoclosure () -> HTML) -> HTML { condition ? piece() : none }

    struct Parts: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity + 32 * interpolationCount) }

        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation(_ piece: HTML) { text += piece.text }
        mutating func appendInterpolation(_ pieces: [HTML]) { for piece in pieces { text += piece.text } }
        mutating func appendInterpolation(_ number: Int) { text += String(number) }
        mutating func appendInterpolation(_ text: String) { for scalar in text.unicodeScalars { append(scalar) } }

        private mutating func append(_ scalar: Unicode.Scalar) {
            switch scalar {
            case "&": text += "&amp;"
            case "<": text += "&lt;"
            case ">": text += "&gt;"
            case "\"": text += "&quot;"
            case "'": text += "&#39;"
            // What changes the order in which the rest of a line is shown, and controls that HTML can't have.
            case "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}": text += "\u{FFFD}"
            case _ where scalar.properties.generalCategory == .control && scalar != "\t" && scalar != "\n": text += "\u{FFFD}"
            default: text.unicodeScalars.append(scalar)
            }
        }
    }
}
