/// The type of a record's field, as in CloudKit: a scalar or a list of scalars.
///
/// ```swift
/// let tags = FieldType("list<string>")   // .list(of: .string)
/// ```
public struct FieldType: Hashable, Sendable {
    /// A type that is no list. The raw values are stored.
    public enum Scalar: UInt8, CaseIterable, Sendable {
        case string = 1
        case int64 = 2
        case double = 3
        /// A moment, to the microsecond.
        case timestamp = 4
        case bytes = 5
        /// Degrees of latitude and longitude, and more where known.
        case location = 6
        /// The name of another record in the same zone.
        case reference = 7
        /// A file, content-addressed.
        case asset = 8

        public var name: String {
            switch self {
            case .string: "string"
            case .int64: "int64"
            case .double: "double"
            case .timestamp: "timestamp"
            case .bytes: "bytes"
            case .location: "location"
            case .reference: "reference"
            case .asset: "asset"
            }
        }
    }

    public let scalar: Scalar
    public let isList: Bool

    public init(_ scalar: Scalar, isList: Bool = false) {
        self.scalar = scalar
        self.isList = isList
    }

    public static func list(of scalar: Scalar) -> FieldType { FieldType(scalar, isList: true) }

    public static let string = FieldType(.string)
    public static let int64 = FieldType(.int64)
    public static let double = FieldType(.double)
    public static let timestamp = FieldType(.timestamp)
    public static let bytes = FieldType(.bytes)
    public static let location = FieldType(.location)
    public static let reference = FieldType(.reference)
    public static let asset = FieldType(.asset)

    /// Reads a type's name: `string`, `int64`, …, `list<string>`. `nil` when it is none.
    public init?(_ name: String) {
        let isList = name.hasPrefix("list<") && name.hasSuffix(">")
        let scalarName = isList ? String(name.dropFirst(5).dropLast()) : name
        guard let scalar = Scalar.allCases.first(where: { $0.name == scalarName }) else { return nil }
        self.init(scalar, isList: isList)
    }
}

extension FieldType: CustomStringConvertible {
    /// The name that `init(_:)` reads.
    public var description: String { isList ? "list<\(scalar.name)>" : scalar.name }
}
