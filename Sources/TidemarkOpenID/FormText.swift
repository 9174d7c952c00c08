import TidemarkModel

/// Names and values as a query has them, and a form that is sent.
enum FormText {
    static func encoded(_ values: [(name: String, value: String)]) -> String {
        values.map { "\(PercentCoding.encoded($0.name))=\(PercentCoding.encoded($0.value))" }.joined(separator: "&")
    }
}
