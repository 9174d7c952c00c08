import Foundation

/// A reference to another record, which need not exist.
public struct Reference<Target: Record>: Codable, Hashable, Sendable {
    /// The name of the other record.
    public var recordName: String

    /// Makes a reference to the record of a name.
    public init(_ recordName: String) { self.recordName = recordName }
    /// Makes a reference to a record, which may be saved before or after.
    public init(_ record: Target) { recordName = record.recordName }

    public init(from decoder: any Decoder) throws { recordName = try decoder.singleValueContainer().decode(String.self) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(recordName)
    }
}

/// The value of a property that refers to records: a ``Reference``, an optional one, or a list of them.
public protocol ReferenceValue {
    /// The type of the records that the value refers to.
    associatedtype Target: Record
    /// The references, in order.
    var references: [Reference<Target>] { get }
}

extension Reference: ReferenceValue {
    /// The reference itself.
    public var references: [Reference] { [self] }
}

extension Optional: ReferenceValue where Wrapped: ReferenceValue {
    /// The references of the value; none without a value.
    public var references: [Reference<Wrapped.Target>] { map(\.references) ?? [] }
}

extension Array: ReferenceValue where Element: ReferenceValue {
    /// The references of all elements.
    public var references: [Reference<Element.Target>] { flatMap(\.references) }
}

extension String {
    /// The canonical form of a record name, in which names are compared along references: a UUID in lower case, any other name as
    /// it is.
    var canonicalRecordName: String { UUID(uuidString: self) == nil ? self : lowercased() }
}
