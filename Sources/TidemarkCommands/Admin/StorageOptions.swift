package import ArgumentParser

/// The place of a cloud that several servers may serve: a database, and a storage of the assets' contents.
package struct StorageOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The PostgreSQL database, as libpq has it, with several hosts if need be. A password comes from PGPASSWORD, PGPASSFILE or a service "
                + "file.", valueName: "address"))
    package var database: String?

    @Option(
        help: ArgumentHelp(
            "With --database, where the contents of assets are: s3://bucket or s3://bucket/prefix, or a directory that all servers share.",
            valueName: "place"))
    package var assets: String?

    @Option(
        help: ArgumentHelp(
            "The address of a server that speaks S3. The keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from "
                + "AWS_SHARED_CREDENTIALS_FILE. (default: Amazon's, in the region)", valueName: "url"))
    package var s3Endpoint: String?

    @Option(help: ArgumentHelp("The region of the bucket.", valueName: "name"))
    package var s3Region = "us-east-1"

    @Option(
        help: ArgumentHelp(
            "Whether the bucket stands in the path of addresses or before the host: path or host. (default: by the endpoint)",
            valueName: "style"))
    package var s3Style: String?

    @Option(help: ArgumentHelp("Connections to the database at once.", valueName: "n"))
    package var databaseConnections = 16

    @Flag(help: "The database's address is that of a pooler that gives each transaction another connection, such as PgBouncer.")
    package var databasePooler = false

    @Option(
        help: ArgumentHelp(
            "With --database-pooler, the address of the database itself, for notifications between servers. Servers need it.",
            valueName: "address"))
    package var databaseDirect: String?

    package func validate() throws {
        guard database == nil || assets != nil else {
            throw ValidationError(
                "--assets is missing: a database needs a place for the contents of assets, such as --assets s3://bucket or --assets /mnt/assets"
            )
        }
        guard assets == nil || database != nil else {
            throw ValidationError(
                "--database is missing: a place of assets is that of a cloud in a database, such as --database postgresql://tidemark@db1/tidemark"
            )
        }
        guard databaseDirect == nil || databasePooler else {
            throw ValidationError("--database-direct needs --database-pooler: without it the database is asked directly anyway")
        }
        guard (1...1_000).contains(databaseConnections) else {
            throw ValidationError("--database-connections takes a number from 1 to 1000")
        }
        guard s3Style.map({ ["path", "host"].contains($0) }) ?? true else {
            throw ValidationError("--s3-style takes path or host")
        }
        if let assets, assets.contains("://") || assets.lowercased().hasPrefix("s3:"), Self.bucket(of: assets) == nil {
            throw ValidationError("--assets takes s3://bucket, s3://bucket/prefix, or a directory, not '\(assets.prefix(100))'")
        }
    }

    /// The bucket of an address, and the beginning of all its keys; `nil` if the text is no bucket's address.
    package static func bucket(of address: String) -> (name: String, prefix: String)? {
        guard address.hasPrefix("s3://") else { return nil }
        let parts = address.dropFirst(5).split(separator: "/", omittingEmptySubsequences: true).map(String.init)
        guard let name = parts.first else { return nil }
        return (name, parts.count > 1 ? parts.dropFirst().joined(separator: "/") + "/" : "")
    }

    package init() {}
}
