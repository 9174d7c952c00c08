import CTideCore
import TidemarkModel
package import TidemarkSQLite

extension RecordBatch {
    /// Gives the names of records, and references to them, the normal form C of Unicode: a file system may have decomposed them, and the same
    /// file is to be the same record wherever it lies. A name that is too long then is refused.
    ///
    /// - Complexity: One pass over the references; over the names only where one has a character from U+0300 on.
    package func composeNames() throws(StoreError) {
        let rows = tide_batch_row_count(pointer)
        if tide_batch_may_need_composing(pointer) {
            for row in 0..<rows where tide_batch_row_is_live(pointer, row) { try composeName(row) }
        }
        for column in 0..<tide_batch_column_count(pointer) {
            let type = FieldType(code: tide_batch_column_type(pointer, column).rawValue)
            guard type?.scalar == .reference else { continue }
            for row in 0..<rows where tide_batch_row_is_live(pointer, row) { try composeCell(row, column) }
        }
    }

    private func composeName(_ row: UInt32) throws(StoreError) {
        var (length, isBlob) = (0, false)
        let start = tide_batch_row_key(pointer, row, &length, &isBlob)
        guard !isBlob, length > 0, let composed = Self.composed(start, length) else { return }
        var error = tide_error()
        switch tide_batch_row_name(pointer, row, composed, composed.count, &error) {
        case TIDE_OK: return
        case TIDE_REJECTED:
            guard tide_batch_row_reject(pointer, row, "", 0, error.reject, error.text) == TIDE_OK else { break }
            return
        default: break
        }
        throw StoreError(.core, "out of memory")
    }

    private func composeCell(_ row: UInt32, _ column: UInt32) throws(StoreError) {
        var cell = tide_batch_cell(pointer, row, column)
        guard UInt32(cell.kind) == TIDE_KIND_TEXT.rawValue,
            let composed = Self.composed(tide_batch_text(pointer, Int(cell.offset)), Int(cell.length))
        else { return }
        var span = tide_span()
        guard tide_batch_text_add(pointer, composed, composed.count, &span) == TIDE_OK else {
            throw StoreError(.core, "out of memory")
        }
        cell.offset = UInt64(span.offset)
        cell.length = span.length
        tide_batch_cell_replace(pointer, row, column, cell)
    }

    /// The normal form C of a text; `nil` where the text is in it.
    private static func composed(_ start: UnsafePointer<CChar>, _ length: Int) -> [CChar]? {
        guard tide_text_may_need_composing(start, length) else { return nil }
        let text = String(decoding: UnsafeRawBufferPointer(start: start, count: length), as: UTF8.self)
        guard !text.isComposed else { return nil }
        return Array(text.composed.utf8CString.dropLast())
    }
}
