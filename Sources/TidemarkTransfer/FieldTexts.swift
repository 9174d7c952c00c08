import CTideManifest
import Foundation
package import TidemarkModel
package import TidemarkSQLite
import TidemarkStore

/// Reads texts as values of fields, by the rules for the cells of a CSV file.
///
/// The rules are in Documentation/Formats/manifest.md, "Types". Imports use the same parser of the C core.
package struct FieldTexts {
    /// A field, and its value as a text.
    package struct Entry {
        package let name: String
        /// The text; `nil` for no value.
        package let text: String?
        /// The field, if its type is known. Otherwise the text decides the type.
        package let known: RecordTypeSchema.Field?

        package init(name: String, text: String?, known: RecordTypeSchema.Field?) {
            (self.name, self.text, self.known) = (name, text, known)
        }
    }

    /// The meaning of a text.
    package enum Value: Hashable, Sendable {
        case value(FieldValue)
        /// The path of a file that becomes an asset.
        case file(String)
        case files([String])
        /// An asset, or a list of assets, that the record has already. The text names them by their identifiers.
        case held(FieldValue)
    }

    /// A field, and its value.
    package struct Reading: Hashable, Sendable {
        package let field: RecordTypeSchema.Field
        /// `nil` for no value.
        package let value: Value?
    }

    /// Reads the fields of one record.
    ///
    /// - Returns: The fields with their types, in the order of the entries.
    /// - Throws: ``StoreError`` `invalid`, with the field and the remedy, if a text can't be read as its field's type or a field
    ///   occurs twice; `schema` for a field without a value whose type is not known.
    package static func read(_ entries: [Entry]) throws(StoreError) -> [Reading] {
        guard !entries.isEmpty else { return [] }
        let batch = try RecordBatch(rowLimit: 1, byteLimit: .max)
        let known = entries.compactMap { entry in
            entry.known.map { ManifestReader.KnownField(name: $0.name, type: $0.type, isBoolean: $0.isBoolean) }
        }
        var error = tide_error()
        let status = withTexts(of: entries) { texts in
            Manifest.withOptions(ImportOptions(type: ""), nameField: nil, knownFields: known) {
                tide_texts_read(&$0, texts.baseAddress!, UInt32(texts.count), batch.pointer, &error)
            }
        }
        guard status == TIDE_OK else { throw StoreError(status == TIDE_REJECTED ? .invalid : .core, error.text) }
        if let refusal = batch.rejections.first {
            let type = entries.first { $0.name == refusal.field }?.known
            throw StoreError(.invalid, "\(refusal.field): \(refusal.message)\(remedy(for: type))")
        }
        var readings: [Reading] = []
        for entry in entries {
            guard let reading = batch.reading(of: entry) else {
                throw StoreError(
                    .schema, "the type of the field '\(entry.name)' is not known; name it, as in \(entry.name):string=")
            }
            readings.append(reading)
        }
        return readings
    }

    /// The form of a value, as words that follow an error. The core's messages about Booleans and times have it already.
    private static func remedy(for field: RecordTypeSchema.Field?) -> String {
        guard let field else { return "" }
        if field.type.isList {
            return #"; write a JSON array such as \#(field.type.scalar == .int64 ? "[1, 2]" : #"["a", "b"]"#)"#
        }
        return switch field.type.scalar {
        case .int64: field.isBoolean ? "" : "; write a whole number such as 3"
        case .double: "; write a number such as 2.5"
        case .timestamp: ""
        case .bytes: "; write Base64 such as aGVsbG8="
        case .location: #"; write a position such as {"latitude": 68.2, "longitude": 13.6}"#
        case .reference: "; write the name of a record"
        case .asset: "; write the path of a file"
        case .string: ""
        }
    }

    /// Passes the texts to a call of the C core, as memory that is valid during the call.
    private static func withTexts<Result>(
        of entries: [Entry], _ body: (UnsafeBufferPointer<tide_field_text>) -> Result
    ) -> Result {
        var strings: [UnsafeMutablePointer<CChar>] = []
        defer { for string in strings { string.deallocate() } }
        func lend(_ text: String) -> (UnsafePointer<CChar>, length: Int) {
            let bytes = text.utf8CString
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count)
            for (index, byte) in bytes.enumerated() { copy[index] = byte }
            strings.append(copy)
            return (UnsafePointer(copy), bytes.count - 1)
        }
        let texts = entries.map { entry in
            let text = entry.text.map(lend)
            return tide_field_text(name: lend(entry.name).0, text: text?.0, length: text?.length ?? 0)
        }
        return texts.withUnsafeBufferPointer(body)
    }
}

extension RecordBatch {
    /// The value of a field in the first row; `nil` if its type is not known.
    fileprivate func reading(of entry: FieldTexts.Entry) -> FieldTexts.Reading? {
        for column in 0..<tide_batch_column_count(pointer) {
            var length = 0
            let name = UnsafeRawBufferPointer(start: tide_batch_column_name(pointer, column, &length), count: length)
            guard name.elementsEqual(entry.name.utf8) else { continue }
            let code = tide_batch_column_type(pointer, column)
            guard let type = FieldType(code: code.rawValue) else { return nil }
            let field = RecordTypeSchema.Field(name: entry.name, type: type, isBoolean: code == TIDE_TYPE_BOOLEAN)
            return FieldTexts.Reading(field: field, value: value(in: column, of: type))
        }
        return nil
    }

    private func value(in column: UInt32, of type: FieldType) -> FieldTexts.Value? {
        let cell = tide_batch_cell(pointer, 0, column)
        switch tide_kind(UInt32(cell.kind)) {
        case TIDE_KIND_INTEGER:
            return switch type.scalar {
            case .timestamp: .value(.timestamp(cell.integer))
            // Only whole numbers and times have cells of this kind.
            case .int64, .string, .double, .bytes, .location, .reference, .asset: .value(.int64(cell.integer))
            }
        case TIDE_KIND_REAL: return .value(.double(cell.real))
        case TIDE_KIND_BLOB: return .value(.bytes(Array(bytes(of: cell))))
        case TIDE_KIND_TEXT: return Self.value(text(of: cell), type).map { .value($0) }
        case TIDE_KIND_PATH: return .file(text(of: cell))
        case TIDE_KIND_PATHS:
            return .files(
                bytes(of: cell).split(separator: 0, omittingEmptySubsequences: true).map { String(decoding: $0, as: UTF8.self) })
        case TIDE_KIND_CLAIM: return Self.value(text(of: cell), type).map { .held($0) }
        default: return nil
        }
    }

    private static func value(_ text: String, _ type: FieldType) -> FieldValue? {
        if type.isList { return StoredText.elements(of: text, type.scalar).map { .list($0, of: type.scalar) } }
        return switch type.scalar {
        case .location: StoredText.place(text).map { .location($0) }
        case .reference: .reference(text)
        case .asset: .asset(text)
        case .string, .int64, .double, .timestamp, .bytes: .string(text)
        }
    }

    private func bytes(of cell: tide_cell) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: tide_batch_text(pointer, Int(cell.offset)), count: Int(cell.length))
    }

    private func text(of cell: tide_cell) -> String { String(decoding: bytes(of: cell), as: UTF8.self) }
}
