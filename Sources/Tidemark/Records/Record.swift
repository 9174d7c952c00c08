public import Foundation
public import TidemarkModel

/// A record type of a program: a plain struct.
///
/// Properties become fields. The fields have the names of the coding keys, and these types:
///
/// | Swift | field |
/// |---|---|
/// | `String`, `URL`, `UUID`, `Decimal` | string |
/// | `Int` and its kin, `Bool` | int64 |
/// | `Double`, `Float` | double |
/// | `Date` | timestamp, to the microsecond |
/// | `Data` | bytes |
/// | ``Asset``, ``Location``, ``Reference`` | asset, location, reference |
/// | an enum with raw values | that of its raw value |
/// | arrays of these, but for bytes and locations | a list |
/// | any other `Codable` value | string: its JSON |
///
/// ```swift
/// struct Destination: Record, Identifiable {
///     var id = UUID()
///     var createdAt = Date()
///     var caption: String
///     var details = ""
///     var image: Asset?
///
///     func validate() throws {
///         if caption.allSatisfy(\.isWhitespace) { throw ValidationError("a destination needs a caption", field: "caption") }
///     }
/// }
/// ```
///
/// A property that is added later must be optional, or ``prototype`` must have its value for older records. ``formerFieldNames``
/// has the former names of properties that were renamed.
///
/// A save of many records encodes them on all cores: a type's own `encode(to:)` runs on any thread, for several records at once.
public protocol Record: Codable, Sendable {
    /// The name of the record type; by default the name of the Swift type. If two Swift types of the same name are used with one
    /// container, at most one of them may have the default. Otherwise the container throws ``StoreError`` `schema`.
    static var recordType: String { get }
    /// The record's name, unique in its zone: 1 to 255 bytes without control characters.
    var recordName: String { get }
    /// The coding key of the record's name, by default `id`. It is not a field.
    static var nameField: String { get }
    /// The unique keys: sets of fields. Records that agree in all fields of a set are merged into one. By default empty.
    static var uniqueKeys: [UniqueKey] { get }
    /// The relationships of the type's references. By default empty: references may then name missing records. A save of the type
    /// stores the relationships, and removes those that the type no longer declares; ``PersistentContainer/declare(_:)`` does
    /// this without a save.
    static var relationships: [Relationship<Self>] { get }
    /// The indexes that make queries of this type fast. By default there are only those of references and names.
    static var indexes: [RecordIndex<Self>] { get }
    /// The merge policy of this type, for saves that name none and for synchronisation; `nil` for the container's.
    /// Synchronisation uses it once the program has used the type, for example by ``PersistentContainer/declare(_:)``.
    /// `SyncConfiguration.mergePolicy` takes precedence.
    static var mergePolicy: MergePolicy? { get }
    /// An instance with values for properties that a record has no value for, such as `nights = 1` for records from before the
    /// property `nights`. Reading, predicates and sorts use its values of properties that are not optional. By default `nil`: then
    /// a record without such a value can't be read.
    ///
    /// ```swift
    /// static var prototype: Stay? { Stay(title: "") }
    /// ```
    static var prototype: Self? { get }
    /// The former names of fields, the latest first, by their current names. If a field has no value, reading, predicates and sorts
    /// use its former names. By default empty.
    ///
    /// ```swift
    /// static let formerFieldNames = ["heading": ["caption", "name"]]
    /// ```
    static var formerFieldNames: [String: [String]] { get }
    /// Returns the name of the field of a property that the type's coding keys rename; `nil` when the field has the name of the
    /// property.
    ///
    /// ```swift
    /// static func fieldName(of property: PartialKeyPath<Stay>) -> String? { property == \Stay.title ? "heading" : nil }
    /// ```
    static func fieldName(of property: PartialKeyPath<Self>) -> String?
    /// The property whose value is the title of a share of such a record. A save that changes the value changes the title, with
    /// the next synchronisation of the owner. By default `nil`: a share keeps the title that it was given.
    ///
    /// It applies to the root of the share, the record that was shared first. The program that synchronises must have saved or
    /// fetched a record of the type since its start. A root whose name has characters other than letters, digits, `-` and `_` is
    /// not found.
    ///
    /// ```swift
    /// static var shareTitle: KeyPath<Destination, String>? { \.caption }
    /// ```
    static var shareTitle: KeyPath<Self, String>? { get }
    /// Throws an error if the record must not be saved as it is. By default, it runs before each insertion and each update.
    func validate() throws
    /// Throws an error if the record must not be inserted. By default it calls ``validate()``.
    func validateForInsert() throws
    /// Throws an error if the record must not replace the store's version. By default it calls ``validate()``.
    ///
    /// - Parameter previous: The store's version.
    func validateForUpdate(from previous: Self) throws
    /// Throws an error if the record must not be deleted.
    func validateForDelete() throws
}

extension Record {
    /// The name of the Swift type.
    public static var recordType: String { ImplicitRecordTypes.name(of: Self.self) }
    /// The coding key `id`.
    public static var nameField: String { "id" }
    /// No unique keys.
    public static var uniqueKeys: [UniqueKey] { [] }
    /// No relationships.
    public static var relationships: [Relationship<Self>] { [] }
    /// No indexes but those of references and names.
    public static var indexes: [RecordIndex<Self>] { [] }
    /// `nil`: the container's policy applies.
    public static var mergePolicy: MergePolicy? { nil }
    /// `nil`: a record without a value for a property that is not optional can't be read.
    public static var prototype: Self? { nil }
    /// No former names.
    public static var formerFieldNames: [String: [String]] { [:] }
    /// `nil`: a share keeps the title that it was given.
    public static var shareTitle: KeyPath<Self, String>? { nil }
    /// `nil`: each field has the name of its property.
    public static func fieldName(of property: PartialKeyPath<Self>) -> String? { nil }
    /// Accepts every record.
    public func validate() throws {}
    /// Calls ``validate()``.
    public func validateForInsert() throws { try validate() }
    /// Calls ``validate()``.
    public func validateForUpdate(from previous: Self) throws { try validate() }
    /// Accepts every deletion.
    public func validateForDelete() throws {}
}

extension Record where Self: Identifiable, ID == UUID {
    /// The identifier in lower case, with hyphens.
    public var recordName: String { id.lowercaseText }
}

extension Record where Self: Identifiable, ID == String {
    /// The identifier.
    public var recordName: String { id }
}

extension UUID {
    /// The text in lower case, with hyphens. `uuidString` takes several times as long, and each save needs the names of its records.
    fileprivate var lowercaseText: String {
        withUnsafeBytes(of: uuid) { bytes in
            String(unsafeUninitializedCapacity: 36) { text in
                var place = 0
                func append(_ digit: UInt8) {
                    text[place] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
                    place += 1
                }
                for (index, byte) in bytes.enumerated() {
                    if index == 4 || index == 6 || index == 8 || index == 10 {
                        text[place] = UInt8(ascii: "-")
                        place += 1
                    }
                    append(byte >> 4)
                    append(byte & 15)
                }
                return place
            }
        }
    }
}

/// A unique key: fields whose values at most one record of a type has.
///
/// Records that agree in all of these fields are merged into one. The record with the lowest name stays, and the fields are
/// merged by the merge policy. So devices that have created such records independently end with the same record.
public struct UniqueKey: Hashable, Sendable {
    /// The names of the fields: the coding keys of their properties.
    public let fields: [String]

    /// Makes a key of at least one field.
    public init(_ fields: String...) { self.fields = fields }
}

/// An error that the hooks of ``Record`` can throw. They can throw any other error, too.
public struct ValidationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, as a sentence for a person.
    public let message: String
    /// The field at fault; `nil` when the error concerns the whole record.
    public let field: String?

    /// Makes an error.
    ///
    /// - Parameters:
    ///   - message: What is wrong, as a sentence for a person.
    ///   - field: The field at fault; `nil` when the error concerns the whole record.
    public init(_ message: String, field: String? = nil) {
        self.message = message
        self.field = field
    }

    public var description: String { message }
}

extension ValidationError: LocalizedError {
    /// The error message: the text of `localizedDescription`.
    public var errorDescription: String? { message }
}
