import Foundation
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// Names for copies of assets that people can read: by the record's caption, title or file name, each name once.
struct AssetNames {
    /// In lower case: some file systems take both cases for one name.
    private var taken: Set<String> = []
    /// Of each label in lower case, the first number that is not taken.
    private var numbers: [String: Int] = [:]
    /// The places of the fields that a record is called by, in order of preference.
    private let places: [Int]

    private static let fields = ["caption", "title", "name", "filename", "fileName", "path"]
    /// Bytes of a name without its extension and number.
    private static let lengthLimit = 100

    private let schema: RecordTypeSchema

    init(_ schema: RecordTypeSchema) {
        self.schema = schema
        places = Self.fields.compactMap { name in schema.fields.firstIndex { $0.name == name && $0.type == .string } }
    }

    /// What a record is called by.
    func label(_ record: StoredRecord) -> String {
        for place in places {
            guard case .string(let text) = record.values[place] else { continue }
            let label = Self.safe(text)
            if !label.isEmpty { return label }
        }
        let label = Self.safe(schema.shortName(of: record.name))
        return label.isEmpty ? "asset" : label
    }

    /// A name that no other copy has.
    ///
    /// - Parameter isFree: Whether a file of that name may be made.
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

    /// A text as the name of a file: in one folder, of characters that every file system takes, not hidden, of moderate length.
    static func safe(_ text: String) -> String {
        var name = ""
        // Of a path, the file's own name, without its extension.
        let last = text.split(separator: "/").last.map(String.init) ?? ""
        let stem =
            text.contains("/")
                || ["jpg", "jpeg", "png", "heic", "tiff", "gif", "webp", "mov", "mp4", "pdf"].contains(
                    (last as NSString).pathExtension.lowercased())
            ? (last as NSString).deletingPathExtension : last
        // More can't be part of the name, however long the text is.
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
