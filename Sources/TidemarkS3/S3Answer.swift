import Foundation
import TidemarkModel

/// An object of a list.
package struct S3Object: Hashable, Sendable {
    let key: String
    let size: Int64
    /// Microseconds since 1970 UTC.
    let modified: Int64
}

/// A page of a list.
package struct S3Page: Hashable, Sendable {
    var objects: [S3Object] = []
    /// The keys up to the delimiter, where there is one.
    var prefixes: [String] = []
    /// The token that asks for the next page; `nil` on the last.
    var next: String?
}

/// An unfinished multipart upload.
package struct S3Upload: Hashable, Sendable {
    let key, id: String
    /// Microseconds since 1970 UTC.
    let begun: Int64
}

/// Reads S3's answers, which are a small part of XML. Attributes, declarations and unknown elements are skipped.
package struct S3Answer {
    /// The elements that contain no others: the names from the root on, and the text.
    private let leaves: [(path: [String], text: String)]
    /// For each leaf, the number of the element around it. It tells the leaves of one element from those of the next.
    private let owners: [Int]

    /// More elements than any answer to our requests has.
    private static let limit = 100_000
    private static let depthLimit = 20

    /// - Returns: `nil` if the bytes are no such XML.
    package init?(_ bytes: [UInt8]) {
        var (leaves, owners): ([(path: [String], text: String)], [Int]) = ([], [])
        var (path, numbers, count): ([String], [Int], Int) = ([], [], 0)
        var isLeaf = false
        var rest = bytes[...]
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            let text = rest[..<open]
            guard let close = rest[open...].firstIndex(of: UInt8(ascii: ">")) else { return nil }
            let tag = rest[(open + 1)..<close]
            rest = rest[(close + 1)...]
            guard let first = tag.first else { return nil }
            switch first {
            case UInt8(ascii: "?"), UInt8(ascii: "!"): continue
            case UInt8(ascii: "/"):
                guard let name = path.last, name == Self.name(tag.dropFirst()) else { return nil }
                if isLeaf {
                    guard let text = Self.decoded(text) else { return nil }
                    leaves.append((path, text))
                    owners.append(numbers.dropLast().last ?? 0)
                }
                path.removeLast()
                numbers.removeLast()
                isLeaf = false
            default:
                let name = Self.name(tag)
                count += 1
                guard count <= Self.limit, path.count < Self.depthLimit else { return nil }
                if tag.last == UInt8(ascii: "/") {
                    leaves.append((path + [name], ""))
                    owners.append(numbers.last ?? 0)
                    isLeaf = false
                } else {
                    path.append(name)
                    numbers.append(count)
                    isLeaf = true
                }
            }
        }
        guard path.isEmpty, count > 0 else { return nil }
        (self.leaves, self.owners) = (leaves, owners)
    }

    /// The name of an element, without a prefix of a namespace and attributes.
    private static func name(_ tag: ArraySlice<UInt8>) -> String {
        let word = tag.prefix { $0 > 32 && $0 != UInt8(ascii: "/") }
        let name = word.lastIndex(of: UInt8(ascii: ":")).map { word[($0 + 1)...] } ?? word
        return String(decoding: name, as: UTF8.self)
    }

    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.contains("&") else { return text }
        var (result, rest) = ("", text[...])
        while let ampersand = rest.firstIndex(of: "&") {
            result += rest[..<ampersand]
            guard let end = rest[ampersand...].firstIndex(of: ";") else { return nil }
            let name = rest[rest.index(after: ampersand)..<end]
            let known = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]
            if let character = known[String(name)] {
                result += character
            } else {
                let isHexadecimal = name.hasPrefix("#x")
                guard name.hasPrefix("#"),
                    let number = UInt32(name.dropFirst(isHexadecimal ? 2 : 1), radix: isHexadecimal ? 16 : 10),
                    let scalar = Unicode.Scalar(number)
                else { return nil }
                result.unicodeScalars.append(scalar)
            }
            rest = rest[rest.index(after: end)...]
        }
        return result + rest
    }

    /// The text of an element below the root.
    func text(_ name: String) -> String? { leaves.first { $0.path.count == 2 && $0.path[1] == name }?.text }

    /// Whether the root has a name.
    func isRoot(_ name: String) -> Bool { leaves.first?.path.first == name }

    /// Returns the texts in each element of a name below the root.
    private func groups(_ name: String) -> [[String: String]] {
        var (groups, last): ([[String: String]], Int?) = ([], nil)
        for (leaf, owner) in zip(leaves, owners) where leaf.path.count == 3 && leaf.path[1] == name {
            if last != owner { groups.append([:]) }
            last = owner
            groups[groups.count - 1][leaf.path[2]] = leaf.text
        }
        return groups
    }

    /// The code of an error, such as `NoSuchKey`; `nil` where the answer is none.
    package var errorCode: String? { isRoot("Error") ? text("Code") : nil }

    /// - Returns: `nil` where the answer is no list.
    package var page: S3Page? {
        guard isRoot("ListBucketResult") else { return nil }
        var page = S3Page()
        for group in groups("Contents") {
            guard let key = group["Key"], let size = group["Size"].flatMap({ Int64($0) }), size >= 0,
                let modified = group["LastModified"].flatMap({ S3Time.microseconds($0) })
            else { return nil }
            page.objects.append(S3Object(key: key, size: size, modified: modified))
        }
        page.prefixes = groups("CommonPrefixes").compactMap { $0["Prefix"] }
        if text("IsTruncated") == "true" {
            guard let next = text("NextContinuationToken"), !next.isEmpty else { return nil }
            page.next = next
        }
        return page
    }

    /// - Returns: `nil` where the answer is no list of uploads.
    package var uploads: [S3Upload]? {
        guard isRoot("ListMultipartUploadsResult") else { return nil }
        return groups("Upload").compactMap { group in
            guard let key = group["Key"], let id = group["UploadId"],
                let begun = group["Initiated"].flatMap({ S3Time.microseconds($0) })
            else { return nil }
            return S3Upload(key: key, id: id, begun: begun)
        }
    }
}

/// Moments, as S3 writes them.
enum S3Time {
    /// Reads `2026-11-25T20:35:11.073Z`.
    static func microseconds(_ text: String) -> Int64? {
        let parts = text.split(whereSeparator: { "-T:Z.".contains($0) })
        guard text.hasSuffix("Z"), parts.count == 6 || parts.count == 7 else { return nil }
        let numbers = parts.prefix(6).compactMap { Int64($0) }
        guard numbers.count == 6 else { return nil }
        // Digits alone: with an exponent it could be any number.
        let digits = parts.count == 7 ? parts[6] : "0"
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let fraction = Double("0.\(digits)") else { return nil }
        return seconds(numbers).map { $0 * 1_000_000 + Int64(fraction * 1e6) }
    }

    /// Reads `Wed, 25 Nov 2026 20:35:11 GMT`.
    static func microseconds(header text: String) -> Int64? {
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let parts = text.split(whereSeparator: { " :,".contains($0) })
        guard parts.count == 8, parts[7] == "GMT", let month = months.firstIndex(of: String(parts[2])) else { return nil }
        let numbers = [parts[3], "\(month + 1)", parts[1], parts[4], parts[5], parts[6]].compactMap { Int64($0) }
        return numbers.count == 6 ? seconds(numbers).map { $0 * 1_000_000 } : nil
    }

    /// Seconds since 1970 of a year, month, day, hour, minute and second (Gregorian, UTC).
    private static func seconds(_ parts: [Int64]) -> Int64? {
        let (year, month, day) = (parts[0], parts[1], parts[2])
        guard 1970...9999 ~= year, 1...12 ~= month, 1...31 ~= day, 0...24 ~= parts[3], 0...59 ~= parts[4], 0...60 ~= parts[5]
        else {
            return nil
        }
        // Years that begin in March, so that the leap day is the last.
        let shifted = month > 2 ? year : year - 1
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
        return days * 86_400 + parts[3] * 3600 + parts[4] * 60 + parts[5]
    }
}
