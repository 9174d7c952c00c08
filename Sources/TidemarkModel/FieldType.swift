/// The type of a record's field, as in CloudKit: a scalar or a list of scalars.
///
/// ```swift
/// let tags = FieldType("list<string>")   // .list(of: .string)
/// ```
public struct FieldType: Hashable, Sendable {
    /// A type other than a list. The raw values are stored.
    public enum Scalar: UInt8, CaseIterable, Sendable {
        /// Text in UTF-8, without NUL characters.
        case string = 1
        /// A whole number of 64 bits. Booleans are 1 and 0.
        case int64 = 2
        /// A finite number.
        case double = 3
        /// A moment, to the microsecond.
        case timestamp = 4
        /// Bytes without a meaning of their own.
        case bytes = 5
        /// A place on Earth: latitude and longitude in degrees, and optional values such as the altitude.
        case location = 6
        /// The name of another record in the same zone.
        case reference = 7
        /// A file, content-addressed.
        case asset = 8

        /// The type's name, as schema files and the command-line tool have it.
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

    /// The type of a value, or of each element of a list.
    public let scalar: Scalar
    /// Whether the type is a list of ``scalar``.
    public let isList: Bool

    /// Makes a type.
    public init(_ scalar: Scalar, isList: Bool = false) {
        self.scalar = scalar
        self.isList = isList
    }

    /// The type of a list. A store holds no lists of bytes or of locations.
    public static func list(of scalar: Scalar) -> FieldType { FieldType(scalar, isList: true) }

    /// Text.
    public static let string = FieldType(.string)
    /// A whole number of 64 bits.
    public static let int64 = FieldType(.int64)
    /// A finite number.
    public static let double = FieldType(.double)
    /// A moment, to the microsecond.
    public static let timestamp = FieldType(.timestamp)
    /// Bytes.
    public static let bytes = FieldType(.bytes)
    /// A place on Earth.
    public static let location = FieldType(.location)
    /// The name of another record.
    public static let reference = FieldType(.reference)
    /// A file, content-addressed.
    public static let asset = FieldType(.asset)

    /// Makes the type of a name: `string`, `int64`, …, `list<string>`. `nil` when no type has that name.
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
