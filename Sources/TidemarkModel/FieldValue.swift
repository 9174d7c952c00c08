import Foundation

/// The value of a record's field.
public enum FieldValue: Hashable, Sendable {
    /// Text in UTF-8, without NUL characters.
    case string(String)
    /// A whole number. Booleans are 1 and 0.
    case int64(Int64)
    /// A finite number; a store has no negative zero.
    case double(Double)
    /// Microseconds since 1970 UTC.
    case timestamp(Int64)
    /// Bytes.
    case bytes([UInt8])
    /// A place on Earth.
    case location(Location)
    /// A record name.
    case reference(String)
    /// A blob's identifier.
    case asset(String)
    /// Elements of one scalar type. A store holds no lists of bytes or of locations.
    case list([FieldValue], of: FieldType.Scalar)
}

extension FieldValue {
    /// The type of a field that holds the value.
    public var type: FieldType {
        switch self {
        case .string: .string
        case .int64: .int64
        case .double: .double
        case .timestamp: .timestamp
        case .bytes: .bytes
        case .location: .location
        case .reference: .reference
        case .asset: .asset
        case .list(_, let scalar): .list(of: scalar)
        }
    }
}

extension FieldValue {
    /// Returns whether two values are the same. Text and bytes are compared byte for byte: another encoding of the same characters
    /// is an edit, too.
    package func isSame(as other: FieldValue) -> Bool {
        switch (self, other) {
        case (.string(let one), .string(let other)), (.reference(let one), .reference(let other)),
            (.asset(let one), .asset(let other)):
            one.hasSameBytes(as: other)
        case (.list(let one, let scalar), .list(let other, let otherScalar)):
            scalar == otherScalar && one.count == other.count && zip(one, other).allSatisfy { $0.isSame(as: $1) }
        case (.location(let one), .location(let other)): one == other
        case (.int64(let one), .int64(let other)), (.timestamp(let one), .timestamp(let other)): one == other
        case (.double(let one), .double(let other)): one == other
        case (.bytes(let one), .bytes(let other)): one == other
        case (.string, _), (.int64, _), (.double, _), (.timestamp, _), (.bytes, _), (.location, _), (.reference, _), (.asset, _),
            (.list, _):
            false
        }
    }
}

extension FieldValue {
    /// The value, with the record names of references in the normal form C of Unicode.
    package var composingReferences: FieldValue {
        switch self {
        case .reference(let name): .reference(name.composed)
        case .list(let elements, of: .reference): .list(elements.map(\.composingReferences), of: .reference)
        case .string, .int64, .double, .timestamp, .bytes, .location, .asset, .list: self
        }
    }
}

extension FieldValue? {
    package func isSame(as other: FieldValue?) -> Bool {
        switch (self, other) {
        case (nil, nil): true
        case (let one?, let other?): one.isSame(as: other)
        case (nil, _?), (_?, nil): false
        }
    }
}

extension [String: FieldValue] {
    func isSame(as other: [String: FieldValue]) -> Bool {
        count == other.count && allSatisfy { field, value in FieldValue?(value).isSame(as: other[field]) }
    }
}

extension String {
    fileprivate func hasSameBytes(as other: String) -> Bool {
        utf8.count == other.utf8.count
            && (utf8.withContiguousStorageIfAvailable { mine in
                other.utf8.withContiguousStorageIfAvailable { theirs in
                    mine.isEmpty || memcmp(mine.baseAddress!, theirs.baseAddress!, mine.count) == 0
                }
            } ?? nil) ?? utf8.elementsEqual(other.utf8)
    }
}
