extension AdminData {
    /// The options that name the cloud, quoted for a shell, with a space before each: for a command that a message offers.
    var repeated: String {
        let isBucket = storage.assets?.hasPrefix("s3://") == true
        let options: [(String, String?)] = [
            ("data", data), ("config", config), ("database", storage.database), ("assets", storage.assets),
            ("s3-endpoint", storage.s3Endpoint), ("s3-region", isBucket ? storage.s3Region : nil), ("s3-style", storage.s3Style),
            ("database-direct", storage.databaseDirect),
        ]
        let named = options.map { name, value in value.map { " --\(name) \(Wording.shellWord($0))" } ?? "" }
        return named.joined() + (storage.databasePooler ? " --database-pooler" : "")
    }
}
