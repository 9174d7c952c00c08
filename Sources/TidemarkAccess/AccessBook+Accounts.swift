import GRDB

extension AccessBook {
    /// Removes all that the book has of an account: its password, sessions, known addresses, and keys of servers that act as it. The audit log
    /// keeps what was done, under the account's identifier, which leads to nobody once the account is gone.
    ///
    /// - Throws: ``AccessError`` `storage`, `busy`.
    public func removeAccount(_ account: String) async throws(AccessError) {
        try await ledger.write { db in
            for table in ["passwords", "sessions", "known_addresses", "keys"] {
                try db.execute(sql: "DELETE FROM \(table) WHERE account = ?", arguments: [account])
            }
            try AccessTables.bump(db)
        }
    }
}
