import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Makes readable names for copies of assets, from the record's caption, title or file name. Each name is used once.
struct AssetNames {
    /// The used names in lower case, because some file systems ignore the case of letters.
    private var taken: Set<String> = []
    /// For each label in lower case, the first number that is not used.
    private var numbers: [String: Int] = [:]
    /// The indexes of the fields that can name a record, in order of preference.
    private let places: [Int]

    private static let fields = ["caption", "title", "name", "filename", "fileName", "path"]
    /// Bytes of a name without its extension and number.
    private static let lengthLimit = 100

    private let schema: RecordTypeSchema

    init(_ schema: RecordTypeSchema) {
        self.schema = schema
        places = Self.fields.compactMap { name in schema.fields.firstIndex { $0.name == name && $0.type == .string } }
    }

    /// Returns the text that names a record's copies.
    func label(_ record: StoredRecord) -> String {
        for place in places {
            guard case .string(let text) = record.values[place] else { continue }
            let label = Self.safe(text)
            if !label.isEmpty { return label }
        }
        let label = Self.safe(schema.shortName(of: record.name))
        return label.isEmpty ? "asset" : label
    }

    /// Returns a name that no other copy has.
    ///
    /// - Parameter isFree: Returns whether a file of that name may be made.
    mutating func name(_ label: String, _ pathExtension: String, isFree: (String) throws -> Bool) rethrows -> String {
        func numbered(_ number: Int) -> String { "\(label)\(number == 1 ? "" : "-\(number)").\(pathExtension)" }
        let key = numbered(1).lowercased()
        var number = numbers[key] ?? 1
        while taken.contains(numbered(number).lowercased()) { number += 1 }
        numbers[key] = number
        while true {
            let name = numbered(number)
            number += 1
            guard !taken.contains(name.lowercased()), try isFree(name) else { continue }
            taken.insert(name.lowercased())
            return name
        }
    }

    /// Turns a text into a file name: without slashes, of characters that every file system allows, not hidden, and of moderate
    /// length.
    static func safe(_ text: String) -> String {
        var name = ""
        // If the text is a path or a file name, the name of the file without its extension is used.
        let last = text.split(separator: "/").last.map(String.init) ?? ""
        let stem =
            text.contains("/")
                || ["jpg", "jpeg", "png", "heic", "tiff", "gif", "webp", "mov", "mp4", "pdf"].contains(
                    (last as NSString).pathExtension.lowercased())
            ? (last as NSString).deletingPathExtension : last
        // The rest of a long text can't be part of the name.
        let beginning = String(String.UnicodeScalarView(stem.unicodeScalars.prefix(10 * lengthLimit)))
        for character in beginning.precomposedStringWithCanonicalMapping {
            let isUnsafe = character.unicodeScalars.contains { scalar in
                switch scalar.value {
                case 0..<0x20, 0x7f..<0xa0, 0x202a...0x202e, 0x2066...0x2069, 0xfffe...0xffff: true
                default: "\\/:*?\"<>|".unicodeScalars.contains(scalar)
                }
            }
            name.append(isUnsafe ? "-" : character)
        }
        name = name.trimmingCharacters(in: CharacterSet(charactersIn: " .-"))
        while name.utf8.count > lengthLimit { name.removeLast() }
        return name.trimmingCharacters(in: CharacterSet(charactersIn: " .-"))
    }
}
