import CTideManifest

/// Names of types and fields.
enum Identifier {
    /// The reason why a text can't name a type or a field; `nil` when it can.
    static func fault(of name: String) -> String? {
        let (text, length) = (Array(name.utf8CString), name.utf8.count)
        return tide_identifier_is_valid(text, length) ? nil : String(cString: tide_identifier_fault(text, length))
    }

    /// Makes sure that a text can name a type or a field.
    ///
    /// - Parameter what: The thing that it names, with an article, as in "a field".
    /// - Throws: ``ImportError`` `options` with the reason.
    static func check(_ name: String, names what: String) throws(ImportError) {
        if let fault = fault(of: name) { throw ImportError(.options, "'\(name.prefix(100))' cannot name \(what): \(fault)") }
    }
}
