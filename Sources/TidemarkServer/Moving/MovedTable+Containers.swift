import TidemarkPostgres

/// The tables of a container.
extension MovedTable {
    /// Makes a table whose first column is the owner.
    private static func owned(
        _ name: String, _ columns: [MovedColumn], sqliteKey: [String], postgresKey: [String], postgresFilter: String = "TRUE",
        hasIdentity: Bool = false
    ) -> MovedTable {
        MovedTable(
            name: name, postgres: "tidemark_\(name)", columns: [owner] + columns, sqliteKey: sqliteKey,
            postgresKey: ["owner"] + postgresKey, postgresFilter: postgresFilter, hasIdentity: hasIdentity)
    }

    private static let owner = MovedColumn("owner", .owner)
    private static func integer(_ name: String, _ sqlite: String? = nil) -> MovedColumn { .init(name, .integer, sqlite: sqlite) }
    private static func name(_ name: String, _ sqlite: String? = nil) -> MovedColumn { .init(name, .name, sqlite: sqlite) }

    /// In the order in which they are moved: records come before rows that name them.
    static let ofContainers: [MovedTable] = [
        MovedTable(
            name: "owners", postgres: "tidemark_owners", columns: [name("owner", "name"), integer("change")],
            sqliteKey: ["number"], postgresKey: ["owner"], sqliteFilter: "t.change > 0 AND t.name <> ''",
            // The public database has no counter, and an owner without a counter has only a row to lock.
            postgresFilter: "t.change > 0 AND length(t.owner) > 0"),
        MovedTable(
            name: "incarnations", postgres: "tidemark_incarnations",
            columns: [integer("began"), integer("previous"), .init("id", .bytes)], sqliteKey: ["began"], postgresKey: ["began"]),
        owned(
            "zones",
            [
                integer("number", "id"), integer("scope"), name("name"), integer("state"), integer("made"), integer("changed"),
                integer("sharing"), .init("digest", .bytes),
            ], sqliteKey: ["id"], postgresKey: ["number"]),
        owned(
            "records",
            [
                integer("zone"), name("name"), integer("id"), name("type"), .init("fields", .bytes), name("parent"),
                integer("changed"), integer("created"), name("created_by"), integer("modified"), name("modified_by"),
                .init("is_deleted", .flag), .init("digest", .bytes), integer("damaged"),
            ], sqliteKey: ["id"], postgresKey: ["zone", "name"], hasIdentity: true),
        owned(
            "dependencies", [integer("zone"), name("target"), .init("name", .record, sqlite: "record")],
            sqliteKey: ["owner", "zone", "target", "record"], postgresKey: ["zone", "target", "name"],
            postgresFilter: "t.\(PostgresCloudTables.hasTarget)"),
        found,
        owned(
            "assets", [name("digest"), integer("size"), name("payer")], sqliteKey: ["owner", "digest"], postgresKey: ["digest"]),
        owned(
            "named", [integer("zone"), name("digest"), .init("name", .record, sqlite: "record")],
            sqliteKey: ["owner", "zone", "digest", "record"], postgresKey: ["zone", "digest", "name"],
            postgresFilter: "t.\(PostgresCloudTables.hasDigest)"),
        owned(
            "removals",
            [
                integer("id"), integer("zone"), integer("kind"), name("target"), integer("change"), name("account", "user"),
            ], sqliteKey: ["id"], postgresKey: ["id"], hasIdentity: true),
        owned(
            "shares",
            [
                integer("number", "id"), integer("zone"), name("name"), name("root"), name("title"), integer("public_permission"),
                integer("touched"), .init("is_ended", .flag), .init("digest", .bytes),
            ], sqliteKey: ["id"], postgresKey: ["number"]),
        owned(
            "participants",
            [
                name("id"), integer("ordinal"), integer("share"), integer("zone"), name("account", "user"), name("name"),
                integer("address_kind"), name("address"), integer("role"), integer("permission"), integer("acceptance"),
                integer("began"), integer("ended"), integer("invited"), integer("expelled"), .init("digest", .bytes),
            ], sqliteKey: ["ordinal"], postgresKey: ["id"], hasIdentity: true),
        owned(
            "shared_zones", [name("zone_owner"), integer("zone")], sqliteKey: ["owner", "zone_owner", "zone"],
            postgresKey: ["zone_owner", "zone"]),
        owned(
            "links", [integer("share"), name("id"), .init("digest", .bytes), name("participant")],
            sqliteKey: ["owner", "share", "id"], postgresKey: ["share", "id"]),
        owned(
            "covered",
            [integer("share"), name("name"), integer("zone"), name("type"), integer("change"), .init("is_gone", .flag)],
            sqliteKey: ["owner", "share", "name"], postgresKey: ["share", "name"]),
        owned(
            "uploads", [name("digest"), name("account", "user")], sqliteKey: ["owner", "digest", "user"],
            postgresKey: ["digest", "account"]),
        owned(
            "audit",
            [
                integer("time"), integer("zone"), integer("share"), name("account", "user"), name("kind"), name("subject"),
                name("value"),
            ], sqliteKey: ["owner", "time"], postgresKey: ["time"]),
        owned("usage", [integer("bytes")], sqliteKey: ["owner"], postgresKey: []),
        owned(
            "reservations",
            [name("asset_owner"), name("digest"), name("account", "user"), integer("bytes"), integer("time")],
            sqliteKey: ["owner", "asset_owner", "digest", "user"], postgresKey: ["asset_owner", "digest", "account"]),
        owned(
            "answers", [name("token"), integer("time"), .init("answer", .bytes)], sqliteKey: ["owner", "token"],
            postgresKey: ["token"]),
        owned("lost_times", [integer("began"), integer("previous")], sqliteKey: ["owner", "began"], postgresKey: ["began"]),
        owned("writers", [integer("began"), .init("nonce", .bytes)], sqliteKey: ["owner", "began"], postgresKey: ["began"]),
        owned(
            "zone_lives", [integer("zone"), integer("remade"), integer("purged")], sqliteKey: ["owner", "zone"],
            postgresKey: ["zone"]),
    ]

    private static let found: MovedTable = {
        var table = owned(
            "found",
            [
                integer("zone"), .init("name", .record, sqlite: "record"), integer("idx"), integer("ordinal"),
                .init("value", .found),
            ], sqliteKey: ["owner", "record", "idx", "ordinal"], postgresKey: ["zone", "name", "idx", "ordinal"])
        table.sqliteIndex = "found_by_record"
        return table
    }()

    /// The table whose rows name the contents of assets.
    static var assets: MovedTable { ofContainers.first { $0.name == "assets" }! }
}

/// The tables of a whole cloud, by the files of a directory that have them.
extension MovedTable {
    private static func text(_ name: String) -> MovedColumn { .init(name, .text) }

    static let ofAccounts = MovedTable(
        name: "accounts", postgres: "accounts",
        columns: [
            text("id"), text("email"), text("phone"), text("name"), integer("quota"), text("status"),
            .init("discoverable", .flag),
        ], sqliteKey: ["id"], postgresKey: ["id"])

    static let ofCredentials: [MovedTable] = [
        MovedTable(
            name: "containers", postgres: "served_containers", columns: [text("name"), integer("added")], sqliteKey: ["name"],
            postgresKey: ["name"]),
        MovedTable(
            name: "tokens", postgres: "api_tokens",
            columns: [
                text("id"), .init("digest", .bytes), text("container"), text("environment"), name("name"), text("redirect"),
                text("popup"), .init("origins", .texts), integer("made"),
            ], sqliteKey: ["id"], postgresKey: ["id"]),
        MovedTable(
            name: "keys", postgres: "server_keys",
            columns: [
                text("id"), text("container"), text("environment"), name("name"), text("account"), .init("public_key", .bytes),
                integer("made"),
            ], sqliteKey: ["id"], postgresKey: ["id"]),
        MovedTable(
            name: "passwords", postgres: "passwords",
            columns: [
                text("account"), integer("log_n"), integer("r"), integer("p"), .init("salt", .bytes), .init("digest", .bytes),
                integer("changed"),
            ], sqliteKey: ["account"], postgresKey: ["account"]),
        MovedTable(
            name: "sessions", postgres: "sessions",
            columns: [
                .init("id", .bytes), text("account"), text("container"), text("environment"), text("kind"), integer("began"),
                integer("kept"), text("device"), text("system"), integer("used"), text("address"),
            ], sqliteKey: ["id"], postgresKey: ["id"]),
        MovedTable(
            name: "known_addresses", postgres: "known_addresses", columns: [text("account"), text("address"), integer("used")],
            sqliteKey: ["account", "address"], postgresKey: ["account", "address"]),
        MovedTable(
            name: "audit", postgres: "audit_log",
            columns: [
                integer("number"), integer("at"), text("action"), text("actor"), text("account"), text("address"),
                text("container"), text("subject"), text("outcome"), text("before_change"), text("after_change"),
            ], sqliteKey: ["number"], postgresKey: ["number"], hasIdentity: true),
        MovedTable(
            name: "operators", postgres: "operators",
            columns: [text("account"), text("role"), .init("containers", .texts), integer("added")], sqliteKey: ["account"],
            postgresKey: ["account"]),
        MovedTable(
            name: "second_factors", postgres: "second_factors",
            columns: [
                text("account"), .init("secret", .bytes), .init("recovery", .bytes), integer("step"), integer("added"),
            ], sqliteKey: ["account"], postgresKey: ["account"]),
        MovedTable(
            name: "identities", postgres: "identities",
            columns: [text("issuer"), text("subject"), text("account"), text("label"), integer("added")],
            sqliteKey: ["issuer", "subject"], postgresKey: ["issuer", "subject"]),
    ]

    static let ofSubscriptions: [MovedTable] = [
        MovedTable(
            name: "subscriptions", postgres: "subscriptions",
            columns: [
                text("account"), text("container"), text("environment"), integer("scope"), name("id"), .init("content", .bytes),
            ], sqliteKey: ["account", "container", "environment", "scope", "id"],
            postgresKey: ["account", "container", "environment", "scope", "id"]),
        MovedTable(
            name: "devices", postgres: "devices",
            columns: [
                name("token"), text("account"), text("container"), text("environment"), integer("number", "rowid"),
            ], sqliteKey: ["rowid"], postgresKey: ["number"], hasIdentity: true),
    ]
}
