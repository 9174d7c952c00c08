import Foundation

/// A form that a browser has posted: URL-encoded, or in parts (RFC 7578), some of which may be files.
struct PostedForm {
    private(set) var values: [String: String] = [:]
    /// The contents of files, by the names of their fields.
    private(set) var files: [String: Data] = [:]

    init() {}

    /// Reads a form. A body that is no form has no values. If a name comes twice, the first value counts.
    ///
    /// - Parameters:
    ///   - most: The most names and values that are read.
    init(_ body: [UInt8], contentType: String?, most: Int) {
        guard let contentType, MultipartBody.isForm(contentType) else {
            values = TextCoding.pairs(Substring(String(decoding: body, as: UTF8.self)), most: most)
            return
        }
        guard let boundary = MultipartBody.boundary(contentType) else { return }
        let mark = Array("\r\n--\(boundary)".utf8)
        // The first boundary is not preceded by the end of a line.
        let bytes = [0x0d, 0x0a] + body
        guard bytes.starts(with: mark) else { return }
        var place = mark.count
        for _ in 0..<most {
            guard let end = MultipartBody.find(mark, in: bytes, from: place),
                let blank = MultipartBody.find(Array("\r\n\r\n".utf8), in: bytes, from: place), blank + 4 <= end
            else { return }
            let head = String(decoding: bytes[place..<blank], as: UTF8.self)
            add(head, bytes[(blank + 4)..<end])
            place = end + mark.count
        }
    }

    private mutating func add(_ head: String, _ content: ArraySlice<UInt8>) {
        let lines = head.split(whereSeparator: \.isNewline)
        guard let disposition = lines.first(where: { $0.lowercased().hasPrefix("content-disposition:") }),
            let name = Self.parameter("name", of: disposition)
        else { return }
        if Self.parameter("filename", of: disposition) != nil {
            if files[name] == nil { files[name] = Data(content) }
        } else if values[name] == nil, let text = String(validating: content, as: UTF8.self) {
            values[name] = text
        }
    }

    /// Returns a parameter as browsers write it: between quotation marks, with `%22` for a quotation mark, and `%0D%0A` for the
    /// end of a line.
    private static func parameter(_ name: String, of line: Substring) -> String? {
        guard let start = line.range(of: "; \(name)=\"")?.upperBound, let end = line[start...].firstIndex(of: "\"") else {
            return nil
        }
        return String(line[start..<end]).replacing("%22", with: "\"").replacing("%0D%0A", with: "\n")
    }
}
