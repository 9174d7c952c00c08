import CTideCore
import Foundation
package import TidemarkModel
package import TidemarkSQLite

extension RecordBatch {
    /// Adds a row.
    ///
    /// - Parameter values: The fields that the row speaks of, `nil` for no value; the others stay as they are.
    /// - Throws: ``StoreError`` `invalid` when the name or a value can't be stored.
    package func add(name: String, values: [(field: RecordTypeSchema.Field, value: FieldValue?)]) throws(StoreError) {
        var row: UInt32 = 0
        try invalid { _ in tide_batch_row_add(pointer, UInt64(rowCount + 1), tide_span(), &row) }
        let utf8 = Array(name.utf8CString)
        try invalid { tide_batch_row_name(pointer, row, utf8, utf8.count - 1, &$0) }
        for (field, value) in values {
            var column: UInt32 = 0
            let name = Array(field.name.utf8CString)
            try invalid { tide_batch_column(pointer, name, name.count - 1, &column, &$0) }
            tide_batch_column_set_type(pointer, column, field.type.code)
            let cell = try cell(value, field: field)
            try invalid { _ in tide_batch_row_set(pointer, column, cell) }
        }
    }

    /// Adds a row of fields whose columns are known.
    ///
    /// - Parameters:
    ///   - name: The name of the record.
    ///   - changes: The new values, by the places of their fields in `fields`; `nil` removes the value. Other fields stay as they
    ///     are.
    ///   - fields: The fields of the type.
    ///   - columns: The columns of `fields`, from ``columns(of:)``.
    /// - Throws: ``StoreError`` `invalid` when the name or a value can't be stored.
    func add(
        name: String, changes: [(field: Int, value: FieldValue?)], fields: [StoredType.Field], columns: [UInt32]
    ) throws(StoreError) {
        var row: UInt32 = 0
        try invalid { _ in tide_batch_row_add(pointer, UInt64(rowCount + 1), tide_span(), &row) }
        try invalid { error in name.withCharacters { tide_batch_row_name(pointer, row, $0, $1, &error) } }
        for (index, value) in changes {
            let cell = try cell(value, field: fields[index].schema)
            try invalid { _ in tide_batch_row_set(pointer, columns[index], cell) }
        }
    }

    /// Finds the columns of fields, making those that there are not.
    func columns(of fields: [StoredType.Field]) throws(StoreError) -> [UInt32] {
        var columns: [UInt32] = []
        for field in fields {
            var column: UInt32 = 0
            let name = Array(field.name.utf8CString)
            try invalid { tide_batch_column(pointer, name, name.count - 1, &column, &$0) }
            tide_batch_column_set_type(pointer, column, field.type.code)
            columns.append(column)
        }
        return columns
    }

    /// Adds a record as the cloud has it: all fields, those without a value too.
    ///
    /// - Parameters:
    ///   - columns: The columns of `fields`, from ``columns(of:)``.
    ///   - edited: When the fields were edited, as text.
    func add(
        _ record: RemoteRecord, edited: String?, fields: [StoredType.Field], columns: [UInt32]
    ) throws(StoreError) {
        var row: UInt32 = 0
        try invalid { _ in tide_batch_row_add(pointer, UInt64(rowCount + 1), tide_span(), &row) }
        try invalid { error in
            record.name.withCharacters { tide_batch_row_name(pointer, row, $0, $1, &error) }
        }
        try invalid { _ in
            record.tag.withCharacters { tag, tagLength in
                guard let edited else { return tide_batch_row_from_cloud(pointer, row, tag, tagLength, nil, 0) }
                return edited.withCharacters { tide_batch_row_from_cloud(pointer, row, tag, tagLength, $0, $1) }
            }
        }
        for (field, column) in zip(fields, columns) {
            // What is of another type than here is kept aside, and here there is nothing.
            let value = record.values[field.name].flatMap { $0.type == field.type ? $0 : nil }
            let cell = try cell(value, field: .init(name: field.name, type: field.type))
            try invalid { _ in tide_batch_row_set(pointer, column, cell) }
        }
    }

    private func invalid(_ body: (inout tide_error) -> tide_status) throws(StoreError) {
        var error = tide_error()
        switch body(&error) {
        case TIDE_OK: return
        case TIDE_REJECTED: throw StoreError(.invalid, error.text)
        case TIDE_NO_MEMORY: throw StoreError(.core, "out of memory")
        default: throw StoreError(error)
        }
    }

    private func cell(_ value: FieldValue?, field: RecordTypeSchema.Field) throws(StoreError) -> tide_cell {
        guard let value else { return tide_cell(kind: UInt8(TIDE_KIND_NULL.rawValue)) }
        guard value.type == field.type else {
            throw StoreError(
                .invalid, "the field '\(field.name)' is \(field.type); a value of \(value.type) can't be stored in it")
        }
        switch value {
        case .int64(let number), .timestamp(let number):
            var cell = tide_cell(kind: UInt8(TIDE_KIND_INTEGER.rawValue))
            cell.integer = number
            return cell
        case .double(let number):
            guard number.isFinite else { throw StoreError(.invalid, "\(number) can't be stored in the field '\(field.name)'") }
            var cell = tide_cell(kind: UInt8(TIDE_KIND_REAL.rawValue))
            cell.real = number
            return cell
        case .bytes(let bytes):
            return try bytes.withUnsafeBytes { bytes in Result { () throws(StoreError) in try text(bytes, kind: TIDE_KIND_BLOB) }
            }.get()
        case .string, .location, .reference, .asset, .list:
            var string = StoredText.text(value) ?? ""
            return try text(&string, field: field)
        }
    }

    private func text(_ string: inout String, field: RecordTypeSchema.Field) throws(StoreError) -> tide_cell {
        var outcome: Result<tide_cell, StoreError>?
        string.withUTF8 { bytes in
            guard bytes.isEmpty || memchr(bytes.baseAddress!, 0, bytes.count) == nil else {
                outcome = .failure(StoreError(.invalid, "the field '\(field.name)' holds a NUL character, which can't be stored"))
                return
            }
            outcome = Result { () throws(StoreError) in try text(UnsafeRawBufferPointer(bytes), kind: TIDE_KIND_TEXT) }
        }
        return try outcome!.get()
    }

    private func text(_ bytes: UnsafeRawBufferPointer, kind: tide_kind) throws(StoreError) -> tide_cell {
        guard bytes.count <= Self.valueLimit else {
            throw StoreError(
                .invalid, "a value of \(bytes.count) bytes is too long: at most \(Self.valueLimit) can be stored in a field")
        }
        var span = tide_span()
        try invalid { _ in tide_batch_text_add(pointer, bytes.baseAddress, bytes.count, &span) }
        var cell = tide_cell(kind: UInt8(kind.rawValue))
        cell.length = span.length
        cell.offset = UInt64(span.offset)
        return cell
    }

    /// Bytes of one value: as much as a row of a manifest may have.
    static let valueLimit = 16 << 20
}

extension String {
    /// Calls `body` with its UTF-8 and the length of it, without a zero at the end.
    fileprivate func withCharacters<Result>(_ body: (UnsafePointer<CChar>, Int) -> Result) -> Result {
        var copy = self
        return copy.withUTF8 { utf8 in
            utf8.withMemoryRebound(to: CChar.self) { characters in
                // An empty one may have no address.
                guard let start = characters.baseAddress else { return withUnsafePointer(to: 0) { body($0, 0) } }
                return body(start, characters.count)
            }
        }
    }

    /// Whether there is a NUL in it, which a store can't hold.
    var hasNUL: Bool {
        var copy = self
        return copy.withUTF8 { $0.count > 0 && memchr($0.baseAddress!, 0, $0.count) != nil }
    }
}

extension tide_cell {
    fileprivate init(kind: UInt8) {
        self.init()
        self.kind = kind
    }
}
