import Foundation
import TidemarkCloud

/// Reads the content of a form's only part as the form arrives (RFC 7578).
struct MultipartBody {
    private enum State { case header, content, end }

    /// The bytes that end the content: the end of a line and the boundary.
    private let mark: [UInt8]
    private var state = State.header
    private var rest: [UInt8]
    /// The most bytes around the content.
    static let frame: Int64 = 65_536
    /// The most bytes of the lines before the content.
    private static let headerMost = 16_384

    /// - Parameter contentType: The request's `Content-Type`. The initialiser returns `nil` if it is no form.
    /// - Throws: `CloudError` `invalidArguments` for a form without a boundary.
    init?(contentType: String?) throws(CloudError) {
        guard let contentType, Self.isForm(contentType) else { return nil }
        guard let text = Self.boundary(contentType) else {
            throw CloudError(.invalidArguments, "the form's Content-Type has no boundary of 1 to 70 characters")
        }
        mark = Array("\r\n--\(text)".utf8)
        // The first boundary is not preceded by the end of a line.
        rest = [0x0d, 0x0a]
    }

    /// Whether a body of this `Content-Type` is a form in parts.
    static func isForm(_ contentType: String) -> Bool { contentType.lowercased().hasPrefix("multipart/form-data") }

    /// Returns the boundary in a `Content-Type`; `nil` for an invalid one.
    static func boundary(_ contentType: String) -> String? {
        let boundary = contentType.split(separator: ";").map { $0.drop { $0 == " " } }
            .first { $0.lowercased().hasPrefix("boundary=") }?.dropFirst(9)
        let text = boundary.map { $0.filter { $0 != "\"" } } ?? ""
        return (1...70).contains(text.utf8.count) ? text : nil
    }

    /// Reads more of the form.
    ///
    /// - Returns: The bytes that certainly belong to the content.
    mutating func read(_ bytes: [UInt8]) throws(CloudError) -> [UInt8] {
        if state == .end { return [] }
        rest += bytes
        if state == .header {
            guard let blank = Self.find(Array("\r\n\r\n".utf8), in: rest) else {
                guard rest.count <= Self.headerMost else { throw Self.malformed }
                return []
            }
            guard rest.starts(with: mark) else { throw Self.malformed }
            rest.removeSubrange(..<(blank + 4))
            state = .content
            // An empty content ends at once.
            if rest.starts(with: mark.dropFirst(2)) { rest.insert(contentsOf: [0x0d, 0x0a], at: 0) }
        }
        if let end = Self.find(mark, in: rest) {
            state = .end
            return Array(rest[..<end])
        }
        // Bytes that may begin the mark are kept back.
        let sure = max(0, rest.count - mark.count)
        defer { rest.removeSubrange(..<sure) }
        return Array(rest[..<sure])
    }

    /// - Throws: `CloudError` `invalidArguments` when the form is not complete.
    func finish() throws(CloudError) -> [UInt8] {
        guard state == .end else { throw Self.malformed }
        return []
    }

    private static let malformed = CloudError(
        .invalidArguments, "the form is not complete: one part between two boundaries was expected")

    /// Returns the first place of some bytes in others, from a start on.
    static func find(_ wanted: [UInt8], in bytes: [UInt8], from start: Int = 0) -> Int? {
        guard bytes.count >= wanted.count else { return nil }
        return bytes.withUnsafeBufferPointer { bytes in
            wanted.withUnsafeBufferPointer { wanted in
                var place = start
                while place <= bytes.count - wanted.count {
                    if bytes[place] == wanted[0], memcmp(bytes.baseAddress! + place, wanted.baseAddress!, wanted.count) == 0 {
                        return place
                    }
                    place += 1
                }
                return nil
            }
        }
    }
}
