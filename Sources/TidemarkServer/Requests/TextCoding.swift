import TidemarkModel

/// Decodes the text of addresses and forms from clients.
enum TextCoding {
    /// Returns the names and values of a query or a form. If a name comes twice, the first value counts. Parts that are no text
    /// are left out.
    ///
    /// - Parameter most: The most names that are read.
    static func pairs(_ text: Substring, most: Int = 100) -> [String: String] {
        guard !text.isEmpty else { return [:] }
        var pairs: [String: String] = [:]
        for pair in text.utf8.split(separator: UInt8(ascii: "&"), maxSplits: most) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            guard let name = PercentCoding.decoded(Substring(pair[..<end]).utf8, plusIsSpace: true) else { continue }
            let rest = end == pair.endIndex ? pair[end...] : pair[pair.index(after: end)...]
            guard let value = PercentCoding.decoded(Substring(rest).utf8, plusIsSpace: true), pairs[name] == nil else { continue }
            pairs[name] = value
        }
        return pairs
    }
}
