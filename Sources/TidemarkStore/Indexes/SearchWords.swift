/// The words that a search looks for.
package struct SearchWords: Sendable {
    /// What FTS5 puts before and behind a word that was found: control characters, which the text of a person does not have.
    package static let start: Unicode.Scalar = "\u{2}"
    package static let end: Unicode.Scalar = "\u{3}"

    /// The query in the language of FTS5; `nil` without any word.
    package let query: String?

    /// Reads words, phrases in quotation marks, and beginnings of words with a star behind them. Nothing else has a meaning.
    package init(_ text: String) {
        var terms: [String] = []
        for (index, part) in text.split(separator: "\"", omittingEmptySubsequences: false).enumerated() {
            if index % 2 == 1 {
                if part.contains(where: { $0.isLetter || $0.isNumber }) { terms.append("\"\(part)\"") }
                continue
            }
            for word in part.split(whereSeparator: \.isWhitespace) where word.contains(where: { $0.isLetter || $0.isNumber }) {
                let isBeginning = word.hasSuffix("*")
                terms.append("\"\(isBeginning ? word.dropLast() : word)\"" + (isBeginning ? " *" : ""))
            }
        }
        // A NUL ends a text of SQLite.
        query = terms.isEmpty ? nil : terms.joined(separator: " AND ").replacing("\0", with: " ")
    }
}
