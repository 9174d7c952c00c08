package import GRDB
import TidemarkSQLite

/// A scalar in JSON that the store has written: an element of a list, a value before a change.
package struct StoredScalar: Decodable {
    package let value: DatabaseValue

    package init(from decoder: any Decoder) throws {
        // One type after the other: only a try shows which it is.
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            value = .null
        } else if let integer = try? container.decode(Int64.self) {
            value = integer.databaseValue
        } else if let real = try? container.decode(Double.self) {
            value = real.databaseValue
        } else {
            value = try container.decode(String.self).databaseValue
        }
    }
}
