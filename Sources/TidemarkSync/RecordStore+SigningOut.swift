import TidemarkContainers
package import TidemarkModel
public import TidemarkSQLite
package import TidemarkStore

extension StoreError.Code {
    /// The quarantine belongs to another account than the one that is signed in.
    public static let anotherAccount = StoreError.Code(rawValue: "anotherAccount")
}

extension RecordStore {
    /// Ends the synchronisation with an account.
    ///
    /// - Parameters:
    ///   - choice: The treatment of the account's records here.
    ///   - reason: The reason that a quarantine states.
    /// - Returns: The quarantine, if records were set aside.
    package func signOut(_ choice: SignOutChoice, reason: String) throws(StoreError) -> Quarantine? {
        var quarantine: Quarantine?
        switch choice {
        case .quarantine: quarantine = try setAside(reason: reason)
        // The store remembers what the cloud has. The same account continues where it stopped; another account gets none of the
        // records.
        case .keep: break
        case .delete: try wipe()
        }
        if scope == .private { try updateAccountSettings { $0.email = nil } }
        return quarantine
    }

    /// Brings back records that were set aside, and discards the quarantine.
    ///
    /// - Parameters:
    ///   - options: Which records are brought back, and where.
    ///   - author: The name that history gives the transaction.
    ///   - role: The part of the process that brings them back.
    ///   - policy: Also resolves conflicts with changes that were made here meanwhile.
    /// - Throws: ``StoreError`` `anotherAccount`; those of a save.
    package func restore(
        _ quarantine: Quarantine, options: QuarantineRestoration, author: String, role: WriterRole = .program,
        policy: @Sendable (String) -> MergePolicy
    ) throws -> SaveOutcome {
        let checkUser: @Sendable (String?) throws -> Void = { user in
            if user == quarantine.user || options.contains(.intoAnotherAccount) { return }
            throw StoreError(
                .anotherAccount,
                user == nil
                    ? "the records that were set aside belong to an account, and none is synchronised here: sign in and synchronise first, or restore them into another account"
                    : "the records that were set aside belong to another account than the one that is signed in; sign in as that one, or restore them into another account"
            )
        }
        // Checked before anything is copied, and again before it is written, because another process may sign in meanwhile.
        try checkUser(syncState().user)
        let outcome = try restore(
            quarantine, all: options.contains(.withRecordsOfTheCloud), author: author, role: role, policy: policy,
            checkUser: checkUser)
        // The cloud of another account does not bring these records back, and they exist nowhere else.
        let isWhole = try syncState().user == quarantine.user || options.contains(.withRecordsOfTheCloud)
        if isWhole, !options.contains(.keepingQuarantine) { try container.discard(quarantine) }
        return outcome
    }
}
