import Foundation
import TidemarkCloud

/// A value of a row that is moved from one kind of storage to the other.
enum MovedValue: Hashable, Codable, Sendable {
    case null
    case integer(Int64)
    case bytes(Data)
}

/// A column of a table that both kinds of storage have.
struct MovedColumn: Sendable {
    enum Kind: Sendable {
        /// `int8`; an integer.
        case integer
        /// `bool`; an integer.
        case flag
        /// `bytea`; a text, which may contain U+0000.
        case name
        /// `bytea`; bytes.
        case bytes
        /// `text`; a text.
        case text
        /// `text[]`; a text with JSON.
        case texts
        /// `bytea`, the owner's name; the owner's number.
        case owner
        /// `bytea`, a record's name; the record's number.
        case record
        /// `bytea` that sorts as the value, with a location's numbers beside it; a value of any type.
        case found
    }

    /// The column's name in PostgreSQL.
    let name: String
    /// In SQLite.
    let sqlite: String
    let kind: Kind

    init(_ name: String, _ kind: Kind, sqlite: String? = nil) {
        (self.name, self.sqlite, self.kind) = (name, sqlite ?? name, kind)
    }
}

/// A table that both kinds of storage have, with its form in each.
struct MovedTable: Sendable {
    /// The table's name in SQLite.
    let name: String
    /// The table's name in PostgreSQL.
    let postgres: String
    let columns: [MovedColumn]
    /// The columns that order the rows in SQLite.
    let sqliteKey: [String]
    /// The columns that order the rows in PostgreSQL, by their names in ``columns``.
    let postgresKey: [String]
    /// A condition for the rows that are moved.
    var sqliteFilter = "TRUE"
    var postgresFilter = "TRUE"
    /// An index that SQLite has to use.
    var sqliteIndex: String?
    /// Whether PostgreSQL numbers the rows itself.
    var hasIdentity = false

    /// The place of each column of ``postgresKey``.
    var postgresKeyPlaces: [Int] { postgresKey.compactMap { name in columns.firstIndex { $0.name == name } } }
}

/// A row, its values in the order of its table's columns.
typealias MovedRow = [MovedValue]

/// A sum of the digests of rows. It is equal for equal rows in any order, so each side reads its rows in its own order.
struct RowSum: Hashable, Codable, Sendable {
    private(set) var count = 0
    private var words: [UInt64] = [0, 0, 0, 0]

    mutating func add(_ row: MovedRow) {
        var digest = AssetDigest()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(256)
        for value in row {
            switch value {
            case .null: bytes.append(0)
            case .integer(let number):
                bytes.append(1)
                withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
            case .bytes(let data):
                bytes.append(2)
                withUnsafeBytes(of: Int64(data.count).bigEndian) { bytes.append(contentsOf: $0) }
                bytes.append(contentsOf: data)
            }
        }
        digest.update(bytes)
        let digits = Array(digest.finish().digest.utf8)
        for place in 0..<4 {
            var word: UInt64 = 0
            for digit in digits[(16 * place)..<(16 * place + 16)] {
                word = word << 4 | UInt64(digit < 0x3a ? digit - 0x30 : digit - 0x57)
            }
            words[place] &+= word
        }
        count += 1
    }

    /// The sum as text, for a digest of several sums.
    var text: String { "\(count) \(words.map { String($0, radix: 16) }.joined(separator: " "))" }
}

/// A container of a cloud in one environment, without its rows.
struct MovedContainer: Hashable, Sendable {
    let name: String
    let environment: String
    /// The key with which tags and tokens are encrypted.
    let key: Data
    /// When it was made, in microseconds since 1970 UTC.
    let began: Int64
    /// The number up to which all owners shared one counter.
    let commonChanges: Int64
    /// The schema, as JSON.
    let schema: Data?

    /// The name with the environment.
    var path: String { "\(name)/\(environment)" }

    /// The container as a row, for a digest.
    var row: MovedRow {
        [
            .bytes(Data(name.utf8)), .bytes(Data(environment.utf8)), .bytes(key), .integer(began), .integer(commonChanges),
            schema.map { .bytes($0) } ?? .null,
        ]
    }
}
