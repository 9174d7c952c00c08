import TidemarkModel
import TidemarkSQLite

/// An index that a record type declares, which makes queries of its fields fast.
///
/// ```swift
/// static var indexes: [RecordIndex<Destination>] {
///     [.on(\.rating, \.createdAt), .fullText(\.caption, \.details, language: "en")]
/// }
/// ```
///
/// The first save of such a record builds the index in each store that it writes to, and drops indexes that the type no longer
/// declares. If no record has a value of a property yet, its index is built with the first value. References have indexes that
/// need no declaration. Indexes are not synchronised: each device has those of its program. Programs that share a container
/// should declare the same indexes, because each program drops the indexes that it does not declare.
public struct RecordIndex<R: Record>: Sendable {
    private let index: Result<FieldIndex, StoreError>

    private init(_ kind: FieldIndex.Kind, _ properties: [PartialKeyPath<R>], language: String? = nil) {
        index = Result { () throws(StoreError) in
            var fields: [String] = []
            for property in properties { fields.append(try PropertyNames.name(of: property)) }
            return FieldIndex(kind, fields, language: language)
        }
    }

    /// Declares an index of values. It serves `==`, `isIn`, comparisons of the last property, and sorts.
    ///
    /// - Parameter properties: Stored properties; first the one that most predicates use. Their values are not lists, locations
    ///   or bytes.
    public static func on(_ properties: PartialKeyPath<R>...) -> RecordIndex { RecordIndex(.values, properties) }

    /// Declares an index of the words of texts.
    ///
    /// - Parameters:
    ///   - properties: Stored properties of type `String`.
    ///   - language: The language of the texts, such as `en` or `de`. English words match other forms of the same word: *walk*,
    ///     *walking*. In every other language, a word matches itself, in upper and lower case, with and without diacritics.
    public static func fullText(_ properties: PartialKeyPath<R>..., language: String? = nil) -> RecordIndex {
        RecordIndex(.fullText, properties, language: language)
    }

    /// The index by the names of the fields.
    ///
    /// - Throws: ``StoreError`` `invalid` for a key path that names no stored property.
    func fieldIndex() throws(StoreError) -> FieldIndex { try index.get() }
}
