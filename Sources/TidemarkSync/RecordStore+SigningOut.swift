import TidemarkContainers
package import TidemarkModel
public import TidemarkSQLite
package import TidemarkStore

extension StoreError.Code {
    /// What was set aside belongs to another account than the one that is signed in.
    public static let anotherAccount = StoreError.Code(rawValue: "anotherAccount")
}

extension RecordStore {
    /// Ends the synchronisation with an account.
    ///
    /// - Parameters:
    ///   - choice: What becomes of its records here.
    ///   - reason: What a quarantine says of why it was made.
    /// - Returns: What was set aside, if anything was.
    package func signOut(_ choice: SignOutChoice, reason: String) throws(StoreError) -> Quarantine? {
        var quarantine: Quarantine?
        switch choice {
        case .quarantine: quarantine = try setAside(reason: reason)
        // What the cloud has of them stays known: the same account goes on where it was, another one gets none of them.
        case .keep: break
        case .delete: try wipe()
        }
        if scope == .private { try updateAccountSettings { $0.email = nil } }
        return quarantine
    }

    /// Brings back what was set aside, and discards it then.
    ///
    /// - Parameters:
    ///   - options: What is brought back, and where.
    ///   - author: The name that history gives the transaction.
    ///   - role: The part of the process that brings it back.
    ///   - policy: Resolves conflicts with what was changed here meanwhile, too.
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
        // Before anything is copied; and again where it is written, for another process may sign in meanwhile.
        try checkUser(syncState().user)
        let outcome = try restore(
            quarantine, all: options.contains(.withRecordsOfTheCloud), author: author, role: role, policy: policy,
            checkUser: checkUser)
        // What this account's cloud does not bring back is nowhere else.
        let isWhole = try syncState().user == quarantine.user || options.contains(.withRecordsOfTheCloud)
        if isWhole, !options.contains(.keepingQuarantine) { try container.discard(quarantine) }
        return outcome
    }
}
