/// Writes cells of CSV files (RFC 4180) that spreadsheets can open without harm.
package enum CSVText {
    /// Appends a text as a cell. An empty text, and a text that needs quotes, is quoted.
    ///
    /// A text that a spreadsheet would take for a formula gets an apostrophe before it. So does such a text that has apostrophes
    /// before it already, because an import removes one apostrophe. Callers write numbers without this function, so that a minus
    /// sign stays the first character.
    package static func appendCell(_ text: String, to out: inout [UInt8]) {
        guard isFormula(text) else { return appendQuoted(text, to: &out) }
        appendQuoted("'" + text, to: &out)
    }

    /// Whether a spreadsheet takes a text for a formula, with or without apostrophes before it. Such a text begins with =, +, -,
    /// @, a tab, a line end, or a full-width form of =, +, - or @, as Chinese and Japanese keyboards type them.
    private static func isFormula(_ text: String) -> Bool {
        switch text.unicodeScalars.first(where: { $0 != "'" }) {
        case "=", "+", "-", "@", "\t", "\r", "\n", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}": true
        default: false
        }
    }

    /// Appends a cell as it is, in quotes where it needs them.
    package static func appendQuoted(_ text: String, to out: inout [UInt8]) {
        let needsQuotes = text.isEmpty || text.utf8.contains { $0 == 0x22 || $0 == 0x2c || $0 == 0x0a || $0 == 0x0d }
        guard needsQuotes else {
            out += Array(text.utf8)
            return
        }
        out.append(0x22)
        for byte in text.utf8 {
            if byte == 0x22 { out.append(0x22) }
            out.append(byte)
        }
        out.append(0x22)
    }
}
