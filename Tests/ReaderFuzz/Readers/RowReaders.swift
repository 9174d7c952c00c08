import Foundation
import TidemarkPostgres

/// Readers of what a database answers: values of columns in PostgreSQL's binary form. The first byte says as what the rest is read.
enum RowReaders {
    static func read(_ bytes: [UInt8]) {
        guard let kind = bytes.first else { return }
        let rest = Array(bytes.dropFirst())
        switch kind % 12 {
        case 0: check(Int64.self, rest)
        case 1: check(Double.self, rest)
        case 2: check(Bool.self, rest)
        case 3: check(String.self, rest)
        case 4: check(Data.self, rest)
        case 5: check([Int64].self, rest)
        case 6: check([Int64?].self, rest)
        case 7: check([Double].self, rest)
        case 8: check([Bool?].self, rest)
        case 9: check([String].self, rest)
        case 10: check([Data].self, rest)
        default: check([Data?].self, rest)
        }
    }

    /// Types of columns that a database may say a value to be of: all that are read, and one that none is.
    private static let types: [UInt32] = [16, 17, 19, 20, 21, 23, 25, 701, 1000, 1001, 1009, 1016, 1022, 1043, .max]

    private static func check<Value: PostgresDecodable & PostgresParameter>(_ type: Value.Type, _ bytes: [UInt8]) {
        for number in types { _ = bytes.withUnsafeBytes { Value.decode($0, number) } }
        guard let value = bytes.withUnsafeBytes({ Value.decode($0, Value.typeNumber) }) else { return }
        let written = written(value)
        guard let again = written.withUnsafeBytes({ Value.decode($0, Value.typeNumber) }) else {
            fatalError("a value can't be read that was written: \(value)")
        }
        // The bytes and not the values: NaN is unlike itself.
        demand(self.written(again) == written, "a value is another one when it is written and read again: \(value)")
    }

    private static func written(_ value: some PostgresParameter) -> [UInt8] {
        var bytes: [UInt8] = []
        value.append(to: &bytes)
        return bytes
    }
}
