import Foundation
import TidemarkModel
import TidemarkSQLite

/// Finds the names of fields for key paths of properties, and the coding keys of record types.
enum PropertyNames {
    /// The key path of a stored property. It captures no values, so it never changes.
    private struct Path: Hashable, @unchecked Sendable {
        let path: AnyKeyPath
    }

    /// The names of stored properties only, so there are at most as many as the program has key paths.
    private static let names = LockedValue<[Path: String]>([:])
    private static let keys = LockedValue<[ObjectIdentifier: CodingKeyProbe]>([:])

    /// Returns the name of the field of a property.
    ///
    /// - Throws: ``StoreError`` `invalid` for a key path that does not name a stored property, or whose field is not known.
    static func name<R: Record>(of path: PartialKeyPath<R>) throws(StoreError) -> String {
        if let name = R.fieldName(of: path) { return name }
        let known = Path(path: path)
        if let name = names.withLock({ $0[known] }) { return name }
        let property = try property(path)
        let probe = probe(R.self)
        guard probe.isKey?(property) ?? true else {
            throw StoreError(
                .invalid,
                "\(R.self) has no coding key '\(property)': its CodingKeys leave the property out or rename it. Declare "
                    + "`static func fieldName(of: PartialKeyPath<\(R.self)>) -> String?`, which returns the name")
        }
        names.withLock { $0[known] = property }
        return property
    }

    /// Returns the name of a stored property. Swift gives it only as part of the description, `\Destination.caption`.
    private static func property<R: Record>(_ path: PartialKeyPath<R>) throws(StoreError) -> String {
        let text = path.debugDescription
        let prefix = "\\\(R.self)."
        let name = text.hasPrefix(prefix) ? String(text.dropFirst(prefix.count)) : text
        // Without reflection metadata, Swift knows only the offset of the property.
        if name.hasPrefix("<offset"), !name.contains(">.") {
            throw StoreError(
                .invalid,
                "the program does not have the names of the properties of \(R.self): it was compiled with "
                    + "-disable-reflection-metadata. Declare `static func fieldName(of: PartialKeyPath<\(R.self)>) -> String?`, "
                    + "or use .field(\"…\")")
        }
        guard text.hasPrefix(prefix), !name.isEmpty, name != "self",
            name.allSatisfy({ $0.isLetter || $0.isNumber || $0 == "_" })
        else {
            throw StoreError(
                .invalid,
                "a key path of \(R.self) does not name a stored property: computed and nested properties have no field. Use a "
                    + "stored property, .field(\"…\") or .sql(\"…\")")
        }
        return name
    }

    /// Returns whether a name is one of the type's coding keys; `false` when the keys are not known.
    static func isProperty<R: Record>(_ name: String, of type: R.Type) -> Bool {
        guard let isKey = probe(type).isKey else { return false }
        return isKey(name)
    }

    private static func probe<R: Record>(_ type: R.Type) -> CodingKeyProbe {
        let id = ObjectIdentifier(type)
        if let known = keys.withLock({ $0[id] }) { return known }
        let output = CodingKeyProbe.Output()
        // The decoder has no values, and ends most probes with an error; by then it knows the keys.
        _ = try? R(from: ProbingDecoder(output: output))
        let probe = CodingKeyProbe(isKey: output.isKey)
        keys.withLock { $0[id] = probe }
        return probe
    }
}

/// The test of whether a name is a coding key of a type.
private struct CodingKeyProbe: Sendable {
    /// The test; `nil` when any text can be a key, or when the type's `init(from:)` requests no keyed container.
    let isKey: (@Sendable (String) -> Bool)?

    final class Output {
        var isKey: (@Sendable (String) -> Bool)?
    }
}

/// Records the type of the coding keys that a type uses, and then stops the decoding.
private struct ProbingDecoder: Decoder {
    struct Stop: Error {}

    let output: CodingKeyProbe.Output
    var codingPath: [any CodingKey] { [] }
    var userInfo: [CodingUserInfoKey: Any] { [:] }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        // A key type that accepts any text has no fixed names.
        if Key(stringValue: "\u{1}") == nil { output.isKey = { Key(stringValue: $0) != nil } }
        throw Stop()
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw Stop() }
    func singleValueContainer() throws -> any SingleValueDecodingContainer { throw Stop() }
}
