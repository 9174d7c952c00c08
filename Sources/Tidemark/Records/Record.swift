public import Foundation
public import TidemarkModel

/// A type of records of a program: a plain struct.
///
/// Properties become fields under the names of their coding keys. What they are in the store:
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
/// A save of many records encodes them on all cores: an `encode(to:)` of one's own runs on any thread, for several records at once.
public protocol Record: Codable, Sendable {
    /// The name of the record type; by default the name of the Swift type. If two Swift types of the same name are used with one
    /// container, at most one of them may have the default. Otherwise the container throws ``StoreError`` `schema`.
    static var recordType: String { get }
    /// The record's name, unique in its zone: 1 to 255 bytes without control characters.
    var recordName: String { get }
    /// The coding key under which the record's name is found and that is no field; `id` if nothing else is said.
    static var nameField: String { get }
    /// Sets of fields of which no two records may agree.
    static var uniqueKeys: [UniqueKey] { get }
    /// What the type's references mean. By default empty: references may name records that are not there. A save of the type stores them,
    /// and removes what the type declares no longer; ``PersistentContainer/declare(_:)`` does it without a save.
    static var relationships: [Relationship<Self>] { get }
    /// The indexes that make queries of this type fast; by default none but those of references and names.
    static var indexes: [RecordIndex<Self>] { get }
    /// The policy of this type where a save names none, and where devices meet; `nil` for the container's. A synchronisation knows it once the
    /// program has used the type, as ``PersistentContainer/declare(_:)`` does, and `SyncConfiguration.mergePolicy` goes before it.
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
    /// The property whose value is the title of a share of such a record: a save that changes it changes the title, with the next
    /// synchronisation of the owner. By default `nil`: a share has the title that it was given.
    ///
    /// It counts for the record that was shared first, its root. A program that synchronises must have saved or fetched a record of the type
    /// since it was started, and a root whose name has other characters than letters, digits, `-` and `_` is not found.
    ///
    /// ```swift
    /// static var shareTitle: KeyPath<Destination, String>? { \.caption }
    /// ```
    static var shareTitle: KeyPath<Self, String>? { get }
    /// Throws where the record must not be saved as it is; runs before it is inserted or updated, unless these say otherwise.
    func validate() throws
    /// Throws where the record must not be inserted.
    func validateForInsert() throws
    /// Throws where the record must not take the place of what the store has.
    func validateForUpdate(from previous: Self) throws
    /// Throws where the record must not be deleted.
    func validateForDelete() throws
}

extension Record {
    /// The name of the Swift type.
    public static var recordType: String { ImplicitRecordTypes.name(of: Self.self) }
    /// `id`.
    public static var nameField: String { "id" }
    /// None.
    public static var uniqueKeys: [UniqueKey] { [] }
    /// None.
    public static var relationships: [Relationship<Self>] { [] }
    /// None but those of references and names.
    public static var indexes: [RecordIndex<Self>] { [] }
    /// None: the container's policy counts.
    public static var mergePolicy: MergePolicy? { nil }
    /// None: a record without a value for a property that is not optional can't be read.
    public static var prototype: Self? { nil }
    /// None.
    public static var formerFieldNames: [String: [String]] { [:] }
    /// None: a share has the title that it was given.
    public static var shareTitle: KeyPath<Self, String>? { nil }
    /// `nil`: each field has the name of its property.
    public static func fieldName(of property: PartialKeyPath<Self>) -> String? { nil }
    /// Lets every record through.
    public func validate() throws {}
    /// Asks ``validate()``.
    public func validateForInsert() throws { try validate() }
    /// Asks ``validate()``.
    public func validateForUpdate(from previous: Self) throws { try validate() }
    /// Lets every record be deleted.
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

/// Fields that tell a type's records apart.
///
/// Records that agree in all of them become one: that of the lowest name stays, and fields are merged by policy, so that devices which
/// made them apart end with the same.
public struct UniqueKey: Hashable, Sendable {
    /// The names of the fields, which are in the store those of the coding keys.
    public let fields: [String]

    /// Makes a key of one field or more.
    public init(_ fields: String...) { self.fields = fields }
}

/// Why a record must not be saved, for the hooks of ``Record``; any other error does as well.
public struct ValidationError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, as a sentence for a person.
    public let message: String
    /// The field at fault; `nil` when it is the record.
    public let field: String?

    /// Makes an error of a sentence, and of the field that is at fault.
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
