/// The part of a content that a request asks for (RFC 9110, section 14). A request for several parts gets the whole content.
enum ByteRange: Hashable {
    case all
    case part(Range<Int64>)
    /// The content has no such part.
    case none

    init(_ text: String, of size: Int64) {
        guard text.hasPrefix("bytes=") else {
            self = .all
            return
        }
        let ends = text.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2, !text.contains(",") else {
            self = .all
            return
        }
        let (first, last) = (Int64(ends[0]), Int64(ends[1]))
        switch (first, last) {
        case (let first?, _) where first >= 0 && (last != nil || ends[1].isEmpty):
            if let last, last < first {
                self = .all
            } else {
                self = first < size ? .part(first..<(min(last ?? size - 1, size - 1) + 1)) : .none
            }
        case (nil, let last?) where ends[0].isEmpty && last > 0: self = size > 0 ? .part(max(0, size - last)..<size) : .none
        case (nil, 0?) where ends[0].isEmpty: self = .none
        default: self = .all
        }
    }
}
