import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// What a form has sent: texts, and at most one file.
struct Form: Sendable {
    private(set) var texts: [String: String] = [:]
    /// The content of the field of a file; `nil` where none was chosen.
    private(set) var file: Data?

    /// The most bytes of a form without a file, and of one with a photo.
    static let (textLimit, photoLimit) = (64 << 10, 20 << 20)

    /// How many bytes too many are read so that the refusal reaches the browser.
    private static let dropLimit = 64 << 20

    /// The text of a field, without white space around it and with line feeds alone; empty where there is none.
    subscript(name: String) -> String {
        (texts[name] ?? "").replacing("\r\n", with: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The content of the field of a file, which the form does not keep.
    mutating func takeFile() -> Data? {
        defer { file = nil }
        return file
    }

    func isChecked(_ name: String) -> Bool { texts[name] != nil }

    /// Reads the form of a request.
    ///
    /// - Throws: `PageError` 413 for more than a form may have, 400 for what is no form.
    init(of request: Request, acceptsPhoto: Bool) async throws {
        let limit = acceptsPhoto ? Self.photoLimit + Self.textLimit : Self.textLimit
        let length = request.headers[.contentLength].flatMap { Int($0) }
        var body = Data()
        if let length, length <= limit { body.reserveCapacity(length) }
        var count = 0
        for try await piece in request.body {
            count += piece.readableBytes
            // A browser that is still sending would not read the answer: some more is read, and dropped.
            guard count <= limit + Self.dropLimit else { throw PageError.tooLarge }
            if count <= limit, length ?? 0 <= limit { piece.withUnsafeReadableBytes { body.append(contentsOf: $0) } }
        }
        guard count <= limit else { throw PageError.tooLarge }
        let type = request.headers[.contentType] ?? ""
        if type.hasPrefix("application/x-www-form-urlencoded") {
            texts = Self.pairs(String(decoding: body, as: UTF8.self))
        } else if acceptsPhoto, type.hasPrefix("multipart/form-data"), let boundary = Self.boundary(of: type) {
            for part in try Multipart.parts(of: body, boundary: boundary) {
                if part.isFile {
                    if !part.content.isEmpty { file = part.content }
                } else {
                    texts[part.name] = String(decoding: part.content, as: UTF8.self)
                }
            }
        } else {
            throw Multipart.malformed
        }
    }

    /// The names and values of `a=b&c=d`.
    static func pairs(_ text: String) -> [String: String] {
        var pairs: [String: String] = [:]
        for pair in text.split(separator: "&").prefix(100) {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                $0.replacing("+", with: " ").removingPercentEncoding ?? ""
            }
            pairs[parts[0]] = parts.count > 1 ? parts[1] : ""
        }
        return pairs
    }

    private static func boundary(of type: String) -> String? {
        guard let range = type.range(of: "boundary=") else { return nil }
        let rest = type[range.upperBound...].prefix { $0 != ";" }
        let boundary = rest.trimmingCharacters(in: CharacterSet(charactersIn: "\" "))
        return (1...70).contains(boundary.utf8.count) ? boundary : nil
    }
}

/// The parts of a body of the type `multipart/form-data` (RFC 7578), as browsers send it.
enum Multipart {
    struct Part {
        let name: String
        let isFile: Bool
        /// A slice of the body, whose bytes are not copied.
        let content: Data
    }

    static let malformed = PageError(400, "Not understood", "The form can't be read. Go back and send it once more.")

    private static let partLimit = 32

    static func parts(of body: Data, boundary: String) throws -> [Part] {
        let delimiter = Data("\r\n--\(boundary)".utf8)
        // The first delimiter has no end of line before it, unless something comes before.
        let first = delimiter.dropFirst(2)
        let start = body.starts(with: first) ? body.startIndex + first.count : body.range(of: delimiter)?.upperBound
        guard var at = start else { throw malformed }
        var parts: [Part] = []
        while !body[at...].starts(with: Data("--".utf8)) {
            guard parts.count < partLimit, body[at...].starts(with: Data("\r\n".utf8)),
                let next = body.range(of: delimiter, in: at..<body.endIndex)
            else { throw malformed }
            parts.append(try part(body[(at + 2)..<max(at + 2, next.lowerBound)]))
            at = next.upperBound
        }
        return parts
    }

    private static func part(_ bytes: Data) throws -> Part {
        guard let end = bytes.range(of: Data("\r\n\r\n".utf8)), end.lowerBound - bytes.startIndex < 4096 else { throw malformed }
        let headers = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        guard let disposition = headers.first(where: { $0.lowercased().hasPrefix("content-disposition:") }),
            let name = parameter("name", of: disposition)
        else { throw malformed }
        return Part(
            name: name, isFile: parameter("filename", of: disposition) != nil, content: bytes[end.upperBound...])
    }

    /// The value of `name="value"`.
    private static func parameter(_ name: String, of header: Substring) -> String? {
        guard let start = header.range(of: "; \(name)=\"")?.upperBound,
            let end = header[start...].firstIndex(of: "\"")
        else { return nil }
        return String(header[start..<end])
    }
}
