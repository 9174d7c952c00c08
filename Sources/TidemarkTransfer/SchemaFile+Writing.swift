import Foundation
public import TidemarkModel

extension SchemaFile {
    /// Returns record types as the text of a schema file, which ``read(_:)`` reads.
    ///
    /// - Parameters:
    ///   - types: The types, with their fields in order.
    ///   - isCompact: Whether the text is one line; otherwise each field has a line of its own.
    public static func text(of types: [RecordTypeSchema], isCompact: Bool = false) -> String {
        func object(_ members: [(String, String)], _ separator: String = ", ") -> String {
            "{" + members.map { "\(quoted($0)): \($1)" }.joined(separator: separator) + "}"
        }
        func list(_ items: [String], indent: Int) -> String {
            guard !isCompact, !items.isEmpty else { return "[\(items.joined(separator: ", "))]" }
            let space = String(repeating: " ", count: indent)
            return "[\n" + items.map { "\(space)  \($0)" }.joined(separator: ",\n") + "\n\(space)]"
        }
        let texts = types.map { type in
            let fields = type.fields.map { field in
                var members = [("name", quoted(field.name)), ("type", quoted(field.typeName))]
                if let target = type.references[field.name] { members.append(("target", quoted(target))) }
                if let relationship = type.relationships[field.name] ?? nil {
                    members.append(("owning", relationship.isOwning ? "true" : "false"))
                    members.append(("deleteRule", quoted(relationship.deleteRule.rawValue)))
                }
                return object(members)
            }
            var members = [("name", quoted(type.name))]
            if let nameField = type.nameField { members.append(("nameField", quoted(nameField))) }
            if !type.uniqueKeys.isEmpty {
                let keys = type.uniqueKeys.map { "[\($0.map(quoted).joined(separator: ", "))]" }
                members.append(("uniqueKeys", "[\(keys.joined(separator: ", "))]"))
            }
            if let indexes = type.indexes, !indexes.isEmpty {
                let texts = indexes.map { index in
                    var members = [("fields", "[\(index.fields.map(quoted).joined(separator: ", "))]")]
                    if index.kind == .fullText { members.append(("fullText", "true")) }
                    if let language = index.language { members.append(("language", quoted(language))) }
                    return object(members)
                }
                members.append(("indexes", "[\(texts.joined(separator: ", "))]"))
            }
            members.append(("fields", list(fields, indent: 4)))
            return object(members, isCompact ? ", " : ",\n     ")
        }
        return "{\"types\": \(list(texts, indent: 0))}\n"
    }

    /// A name in quotes. Names are identifiers without characters to escape, except in a damaged store.
    private static func quoted(_ text: String) -> String {
        var bytes: [UInt8] = []
        JSONString.append(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}
