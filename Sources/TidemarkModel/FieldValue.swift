/// The value of a record's field, as it is stored.
public enum FieldValue: Hashable, Sendable {
    case string(String)
    case int64(Int64)
    case double(Double)
    /// Microseconds since 1970 UTC.
    case timestamp(Int64)
    case bytes([UInt8])
    /// A JSON object with `latitude`, `longitude` and more where known.
    case location(String)
    /// A record name.
    case reference(String)
    /// A blob's identifier.
    case asset(String)
    /// A JSON array of scalars as they are stored.
    case list(String, of: FieldType.Scalar)
}

extension FieldValue {
    /// The type of field that holds it.
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
