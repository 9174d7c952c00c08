/// An index of fields of a record type, which makes queries fast.
///
/// An index belongs to one store: it is not synchronised, and a cloud's schema does not have it.
public struct FieldIndex: Hashable, Sendable {
    /// The kind of an index. The raw values are stored.
    public enum Kind: String, Hashable, Sendable, Codable {
        /// Values and ranges of values, in the order of the fields.
        case values
        /// Words of texts.
        case fullText
    }

    /// The kind of the index.
    public let kind: Kind
    /// The names of the fields, the most significant one first.
    public let fields: [String]
    /// The language of the texts of a full-text index, such as `en`; `nil` for no particular one.
    public let language: String?

    /// Makes an index of values.
    ///
    /// - Parameter fields: The names of one field or more, the most significant one first.
    public init(_ fields: [String]) { (kind, self.fields, language) = (.values, fields, nil) }

    /// Makes a full-text index.
    ///
    /// - Parameters:
    ///   - fields: The names of one text field or more.
    ///   - language: The language of the texts, such as `en`.
    public init(fullText fields: [String], language: String? = nil) {
        (kind, self.fields, self.language) = (.fullText, fields, language)
    }

    /// Makes an index of a kind. Indexes of values have no language.
    public init(_ kind: Kind, _ fields: [String], language: String? = nil) {
        (self.kind, self.fields, self.language) = (kind, fields, kind == .fullText ? language : nil)
    }

    /// The name of the index: two indexes of a type that have the same kind and fields have the same name.
    public var name: String { (kind == .fullText ? "text:" : "") + fields.joined(separator: ".") }
}
