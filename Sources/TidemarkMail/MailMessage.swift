package import Foundation
import TidemarkModel

/// A letter in plain text, and its encoding (RFC 5322, RFC 2047).
package struct MailMessage: Sendable {
    package let recipient, subject, text: String

    /// - Parameters:
    ///   - recipient: An address, such as `anna@example.org`.
    ///   - subject: One line.
    ///   - text: The text, with line feeds.
    package init(to recipient: String, subject: String, text: String) {
        (self.recipient, self.subject, self.text) = (recipient, subject, text)
    }

    /// Whether a text is an address for a header and an envelope. It has nothing in it that would begin another header or another
    /// recipient. An address with letters outside ASCII is refused, because few mail servers can take it.
    package static func isAddress(_ text: String) -> Bool {
        let parts = text.split(separator: "@", omittingEmptySubsequences: false)
        let signs = Set("!#$%&'*+-/=?^_`{|}~.".utf8)
        func isWord(_ part: Substring, _ signs: Set<UInt8>) -> Bool {
            !part.isEmpty && part.first != "." && part.last != "." && !part.contains("..")
                && part.utf8.allSatisfy { byte in
                    (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
                        || signs.contains(byte)
                }
        }
        return parts.count == 2 && text.utf8.count <= 254 && isWord(parts[0], signs) && isWord(parts[1], Set("-.".utf8))
    }

    /// The letter as it is sent, with line ends of CRLF. No line is longer than a line may be.
    ///
    /// - Parameters:
    ///   - sender: The address that it is from.
    ///   - now: Seconds since 1970 UTC.
    ///   - id: The part of the letter's identifier that no other letter has.
    package func encoded(from sender: String, now: Int64, id: UUID = UUID()) -> [UInt8] {
        let domain = sender.split(separator: "@").last.map(String.init) ?? "localhost"
        let lines =
            [
                "From: Tidemark <\(sender)>", "To: <\(recipient)>", "Subject: \(Self.header(subject))",
                // The form is that of HTTP, except for the name of the time zone.
                "Date: \(HTTPDate.text(second: now).replacing(" GMT", with: " +0000"))",
                "Message-ID: <\(id.uuidString.lowercased())@\(domain)>", "MIME-Version: 1.0",
                "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64",
                // Programs do not answer such a letter, for example with a holiday notice.
                "Auto-Submitted: auto-generated", "",
            ] + Self.pieces(Array(text.replacing("\n", with: "\r\n").utf8), of: 57).map { Data($0).base64EncodedString() }
        return Array(lines.joined(separator: "\r\n").utf8) + Array("\r\n".utf8)
    }

    /// A text in a header: as it is, or in encoded words of whole characters.
    private static func header(_ text: String) -> String {
        if text.utf8.allSatisfy({ (0x20...0x7e).contains($0) }), text.utf8.count <= 60, !text.contains("=?") { return text }
        var words: [[UInt8]] = [[]]
        for character in text.unicodeScalars {
            // A line end would begin another header.
            let bytes = Array(String(character.properties.generalCategory == .control ? " " : Character(character)).utf8)
            if words[words.count - 1].count + bytes.count > 45 { words.append([]) }
            words[words.count - 1] += bytes
        }
        return words.map { "=?utf-8?B?\(Data($0).base64EncodedString())?=" }.joined(separator: "\r\n ")
    }

    private static func pieces(_ bytes: [UInt8], of size: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: bytes.count, by: size).map { bytes[$0..<min($0 + size, bytes.count)] }
    }
}
