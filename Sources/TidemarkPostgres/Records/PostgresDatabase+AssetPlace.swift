extension PostgresDatabase {
    /// Returns the identifier of the directory that has the contents of the database's assets; `nil` where none is tied to it.
    package func assetPlaceIdentifier() async throws(PostgresError) -> String? {
        try await query("SELECT (SELECT id FROM tidemark_asset_place)")[0].value(0)
    }

    /// Ties the database to a directory of assets, while no other server does, and stores the directory's identifier.
    ///
    /// - Parameter decide: Returns the identifier. It gets the stored identifier, and whether the database names contents. It may
    ///   be called again.
    /// - Throws: What `decide` throws, or `PostgresError`.
    package func tieAssetPlace(
        _ decide: @escaping @Sendable (_ known: String?, _ namesContents: Bool) throws -> String
    ) async throws -> String {
        try await transaction { db in
            try db.query("LOCK TABLE tidemark_asset_place IN EXCLUSIVE MODE")
            let row = try db.query("SELECT (SELECT id FROM tidemark_asset_place), EXISTS (SELECT FROM tidemark_assets)")[0]
            let known: String? = try row.value(0)
            let identifier = try decide(known, try row.value(1))
            if known == nil {
                try db.query("INSERT INTO tidemark_asset_place (is_only, id) VALUES (true, $1)", identifier)
            }
            return identifier
        }
    }
}
