import CTideCore
import Foundation
package import GRDB
package import TidemarkModel
import TidemarkSQLite

/// Compares rows of a type with their digests.
struct RowDigest: Equatable, Sendable {
    private let seed: UInt64
    /// A digest for each field of the type, in the type's order.
    private let fields: [tide_field_digest]

    /// - Parameter seed: The store's digest seed.
    init(seed: UInt64, fields: [StoredType.Field]) {
        self.seed = seed
        self.fields = fields.map { field in
            let name = Array(field.name.utf8CString)
            return tide_field_digest(seed: tide_field_seed(seed, name, name.count - 1), type: field.type.code.rawValue)
        }
    }

    /// Two equal types have equal digests if their seeds are equal.
    static func == (left: RowDigest, right: RowDigest) -> Bool { left.seed == right.seed }

    /// Returns whether the present row of a statement is what was written.
    ///
    /// - Parameters:
    ///   - key: The place of the column `_key` in the row.
    ///   - digest: The place of the column `_digest`.
    ///   - first: The place of the first field; the others follow.
    func isIntact(_ statement: Statement, key: Int, digest: Int, fields first: Int) -> Bool {
        let columns = tide_row_columns(key: CInt(key), digest: CInt(digest), first_field: CInt(first))
        return fields.withUnsafeBufferPointer {
            tide_row_is_intact(statement.sqliteStatement, columns, seed, $0.baseAddress, UInt32($0.count))
        }
    }

    /// Returns the share of each field in the digest of a statement's present row, and the digest without all of them.
    func parts(_ statement: Statement, key: Int, digest: Int, fields first: Int) -> (parts: [UInt64], missing: UInt64) {
        let columns = tide_row_columns(key: CInt(key), digest: CInt(digest), first_field: CInt(first))
        var parts = [UInt64](repeating: 0, count: fields.count)
        let missing = fields.withUnsafeBufferPointer { fields in
            parts.withUnsafeMutableBufferPointer {
                tide_row_digest_parts(
                    statement.sqliteStatement, columns, seed, fields.baseAddress, UInt32(fields.count), $0.baseAddress)
            }
        }
        return (parts, missing)
    }

    /// Returns the share of a field's value in the digest of its row.
    func part(of value: FieldValue?, field index: Int) -> UInt64 {
        let seed = fields[index].seed
        switch value {
        case nil: return 0
        case .int64(let number), .timestamp(let number): return tide_value_digest_integer(seed, number)
        case .double(let number): return tide_value_digest_real(seed, number)
        case .bytes(let bytes): return bytes.withUnsafeBytes { tide_value_digest_bytes(seed, $0.baseAddress, $0.count) }
        case .string?, .location?, .reference?, .asset?, .list?:
            var text = value.flatMap(StoredText.text) ?? ""
            return text.withUTF8 { tide_value_digest_bytes(seed, $0.baseAddress, $0.count) }
        }
    }
}

extension FieldValue {
    /// The value as a column holds it.
    package var stored: DatabaseValue {
        switch self {
        case .int64(let number), .timestamp(let number): number.databaseValue
        case .double(let number): number.databaseValue
        case .bytes(let bytes): Data(bytes).databaseValue
        case .string, .location, .reference, .asset, .list: StoredText.text(self).databaseValue
        }
    }
}
