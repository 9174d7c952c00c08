import TidemarkModel

/// Encodes names and values for a query or a form.
enum FormText {
    static func encoded(_ values: [(name: String, value: String)]) -> String {
        values.map { "\(PercentCoding.encoded($0.name))=\(PercentCoding.encoded($0.value))" }.joined(separator: "&")
    }
}
