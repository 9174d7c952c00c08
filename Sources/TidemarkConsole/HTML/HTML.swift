/// A piece of HTML. A text is always escaped when it becomes a piece.
///
/// ```swift
/// let row: HTML = "<td title=\"\(record.type)\">\(record.name)</td>"   // both are escaped
/// ```
///
/// A literal is taken as it is. Interpolated texts are escaped for text and for attributes in quotation marks. Attributes always
/// stand in quotation marks, and ``Address`` makes addresses.
package struct HTML: ExpressibleByStringInterpolation, Sendable {
    /// The text of the page.
    package private(set) var text: String

    package init(stringLiteral text: String) { self.text = text }
    package init(stringInterpolation parts: Parts) { text = parts.text }

    /// Escapes a text.
    package init(_ text: String) {
        self.text = ""
        Self.append(text, to: &self.text)
    }

    /// Joins pieces.
    package init(_ pieces: some Sequence<HTML>) { text = pieces.reduce(into: "") { $0 += $1.text } }

    /// An empty piece.
    package static let none: HTML = ""

    package static func + (left: HTML, right: HTML) -> HTML {
        var sum = left
        sum.text += right.text
        return sum
    }

    package static func += (left: inout HTML, right: HTML) { left.text += right.text }

    /// The parts of a literal.
    package struct Parts: StringInterpolationProtocol {
        fileprivate var text: String

        package init(literalCapacity: Int, interpolationCount: Int) {
            text = ""
            text.reserveCapacity(literalCapacity + 32 * interpolationCount)
        }

        package mutating func appendLiteral(_ literal: String) { text += literal }
        package mutating func appendInterpolation(_ piece: HTML) { text += piece.text }
        package mutating func appendInterpolation(_ pieces: [HTML]) { for piece in pieces { text += piece.text } }
        package mutating func appendInterpolation(_ text: String) { HTML.append(text, to: &self.text) }
        package mutating func appendInterpolation(_ number: Int) { text += String(number) }
        package mutating func appendInterpolation(_ address: Address) { HTML.append(address.text, to: &text) }
    }

    /// Escapes characters that have a meaning in HTML. Leaves out those that HTML can't have: control characters other than tabs
    /// and ends of lines.
    private static func append(_ text: String, to page: inout String) {
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": page += "&amp;"
            case "<": page += "&lt;"
            case ">": page += "&gt;"
            case "\"": page += "&quot;"
            case "'": page += "&#39;"
            case "\t", "\n": page.unicodeScalars.append(scalar)
            // These characters would change the direction of the text after them.
            case "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}": page += "\u{FFFD}"
            case _ where scalar.properties.generalCategory == .control: page += "\u{FFFD}"
            default: page.unicodeScalars.append(scalar)
            }
        }
    }
}

extension Sequence {
    /// Joins a piece of HTML for each element.
    package func html(_ piece: (Element) throws -> HTML) rethrows -> HTML { HTML(try map(piece)) }
}

extension HTML {
    /// A piece if a condition is true; otherwise an empty one.
    package static func when(_ condition: Bool, _ piece: @autoclosure () -> HTML) -> HTML { condition ? piece() : .none }
}
