package import CTideCore
package import TidemarkModel
package import TidemarkSQLite

/// Owns a batch of records in the core's memory: a reader fills it, the ingest of files and the store complete it.
///
/// `@unchecked Sendable`: the core's batch serves one thread at a time; a batch is handed from one stage of an import to the next
/// and belongs to one of them only.
package final class RecordBatch: @unchecked Sendable {
    package let pointer: OpaquePointer

    /// - Parameters:
    ///   - rowLimit: Rows from which on the batch counts as full.
    ///   - byteLimit: Bytes of memory from which on it does.
    package init(rowLimit: Int, byteLimit: Int) throws(StoreError) {
        var created: OpaquePointer?
        guard tide_batch_create(UInt32(clamping: rowLimit), byteLimit, &created) == TIDE_OK, let created else {
            throw StoreError(.core, "out of memory")
        }
        pointer = created
    }

    deinit { tide_batch_destroy(pointer) }

    package func reset() { tide_batch_reset(pointer) }

    package var rowCount: Int { Int(tide_batch_row_count(pointer)) }
    package var liveCount: Int { Int(tide_batch_live_count(pointer)) }

    /// Why a row was refused.
    package struct Rejection: Sendable {
        package let line: UInt64
        package let field: String
        package let code: String
        package let message: String
        package let source: [UInt8]
        package let sourceIsCut: Bool

        /// Whether the record in the store is damaged.
        var isOfDamage: Bool { code == String(cString: tide_reject_name(TIDE_REJECT_DAMAGED)) }
    }

    /// The number of rows, and of refused pieces of the source that never became rows.
    package var readCount: Int {
        let loose = (0..<rejectionCount).count { tide_batch_rejection(pointer, UInt32($0)).row == UInt32.max }
        return rowCount + loose
    }

    /// Computes the rows' digests; the writer needs them.
    package func digest(seed: UInt64) { tide_batch_digest(pointer, seed) }

    package var rejectionCount: Int { Int(tide_batch_rejection_count(pointer)) }

    /// The refusals in the order of the source. Readers and later stages add them as they find them.
    package var rejections: [Rejection] {
        (0..<rejectionCount).map(rejection(at:)).sorted { $0.line < $1.line }
    }

    private func rejection(at index: Int) -> Rejection {
        let rejection = tide_batch_rejection(pointer, UInt32(index))
        return Rejection(
            line: rejection.line, field: String(decoding: bytes(rejection.field), as: UTF8.self),
            code: String(cString: tide_reject_name(rejection.reject)),
            message: String(decoding: bytes(rejection.message), as: UTF8.self), source: Array(bytes(rejection.source)),
            sourceIsCut: rejection.source_is_cut)
    }

    private func bytes(_ span: tide_span) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: tide_batch_text(pointer, Int(span.offset)), count: Int(span.length))
    }

    /// A column as the reader found it.
    struct Column {
        let name: String
        /// The core's code of a type; 0 while it is not known.
        let typeCode: UInt32
        /// Whether any row has a value for it.
        let isUsed: Bool
    }

    var columns: [Column] {
        (0..<tide_batch_column_count(pointer)).map { index in
            var length = 0
            let name = UnsafeRawBufferPointer(start: tide_batch_column_name(pointer, index, &length), count: length)
            return Column(
                name: String(decoding: name, as: UTF8.self), typeCode: tide_batch_column_type(pointer, index).rawValue,
                isUsed: tide_batch_column_is_used(pointer, index))
        }
    }

    /// Returns what the rows that were not refused made of their files. The contents of `blobs` are new.
    package func assetCounts(new blobs: [BlobStore.Blob]) -> AssetCounts {
        let named = assets
        let ids = Set(named)
        let stored = blobs.filter { $0.isNew && ids.contains($0.id) }
        return AssetCounts(referenced: named.count, stored: stored.count, bytes: Int(stored.reduce(0) { $0 + $1.size }))
    }

    /// The identifiers of the assets that rows name, as often as they name them. Refused rows are left out.
    var assets: [String] {
        var ids: [String] = []
        for column in 0..<tide_batch_column_count(pointer) {
            let type = FieldType(code: tide_batch_column_type(pointer, column).rawValue)
            guard let type, type.scalar == .asset else { continue }
            for row in 0..<tide_batch_row_count(pointer) where tide_batch_row_is_live(pointer, row) {
                let cell = tide_batch_cell(pointer, row, column)
                guard UInt32(cell.kind) == TIDE_KIND_TEXT.rawValue else { continue }
                let text = String(
                    decoding: bytes(tide_span(offset: UInt32(cell.offset), length: cell.length)), as: UTF8.self)
                if type.isList {
                    ids += text.split(separator: "\"").filter { $0.count > 32 }.map(String.init)
                } else {
                    ids.append(text)
                }
            }
        }
        return ids
    }

    /// The keys of the rows that have not been refused.
    var keys: [RecordKey] {
        (0..<tide_batch_row_count(pointer)).compactMap { row in
            guard tide_batch_row_is_live(pointer, row) else { return nil }
            var length = 0
            var isBlob = false
            let start = tide_batch_row_key(pointer, row, &length, &isBlob)
            return RecordKey(bytes: UnsafeRawBufferPointer(start: start, count: length), isBlob: isBlob)
        }
    }
}

extension RecordTypeSchema.Field {
    /// The core's code of the field's type.
    package var code: tide_type { isBoolean ? TIDE_TYPE_BOOLEAN : type.code }

    /// A field of the core's code of a type; `nil` when there is none.
    init?(name: String, code: UInt32) {
        guard let type = FieldType(code: code) else { return nil }
        self.init(name: name, type: type, isBoolean: code == TIDE_TYPE_BOOLEAN.rawValue)
    }
}

extension FieldType {
    /// The core's code of this type.
    package var code: tide_type {
        tide_type(UInt32(scalar.rawValue) | (isList ? TIDE_TYPE_LIST.rawValue : 0))
    }

    /// The type of the core's code; `nil` when there is none.
    package init?(code: UInt32) {
        let code = code == TIDE_TYPE_BOOLEAN.rawValue ? TIDE_TYPE_INT64.rawValue : code
        guard let value = UInt8(exactly: code & ~TIDE_TYPE_LIST.rawValue) else { return nil }
        guard let scalar = Scalar(rawValue: value) else { return nil }
        self.init(scalar, isList: code & TIDE_TYPE_LIST.rawValue != 0)
    }
}
