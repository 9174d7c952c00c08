extension AdminData {
    /// The options that name the cloud, with a space before each, as a shell takes them: for a command that a message offers.
    var repeated: String {
        let isBucket = storage.assets?.hasPrefix("s3://") == true
        let options: [(String, String?)] = [
            ("data", data), ("config", config), ("database", storage.database), ("assets", storage.assets),
            ("s3-endpoint", storage.s3Endpoint), ("s3-region", isBucket ? storage.s3Region : nil), ("s3-style", storage.s3Style),
            ("database-direct", storage.databaseDirect),
        ]
        let named = options.map { name, value in value.map { " --\(name) \(Self.quoted($0))" } ?? "" }
        return named.joined() + (storage.databasePooler ? " --database-pooler" : "")
    }

    /// A text as a shell takes it for one word.
    private static func quoted(_ text: String) -> String {
        let isPlain = !text.isEmpty && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-:".contains($0)) }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
