package import TidemarkCloud

/// Stores the accounts of a cloud, as rows.
///
/// `Accounts` has the rules: how addresses and numbers are spelled, and who may have which. A storage keeps rows, and sees to it that
/// addresses and numbers are unique. All calls may come from any task, several at a time, also from other processes. What a call has
/// written is durable when it returns, and each call that begins later has it, in every process. Calls throw `CloudError` `zoneBusy` or
/// `serviceUnavailable` where the storage can't be asked for the moment, and `internalError` where it fails.
package protocol AccountStorage: Sendable {
    /// Adds an account, unless one has its address.
    ///
    /// - Returns: The account that has the address now.
    /// - Throws: `CloudError` `invalidArguments` where another account has the phone number.
    func add(_ account: StoredAccount) async throws(CloudError) -> StoredAccount
    /// Writes everything of an account except its address.
    ///
    /// - Parameter before: What the account must still be, except for its address; `nil` for anything.
    /// - Returns: `false` where the account is missing, or is not as `before` any more. Nothing is written then.
    /// - Throws: `CloudError` `invalidArguments` where another account has the phone number.
    @discardableResult
    func update(_ account: StoredAccount, from before: StoredAccount?) async throws(CloudError) -> Bool
    /// Gives an account another address, which is spelled as stored. A missing account is no error.
    ///
    /// - Returns: `false` where another account has the address.
    func setAddress(_ email: String, of id: String) async throws(CloudError) -> Bool
    /// Removes an account. A missing account is no error.
    func remove(_ id: String) async throws(CloudError)

    /// Returns the account of an identifier; `nil` where there is none. Each request asks for its account.
    func account(id: String) async throws(CloudError) -> StoredAccount?
    /// Returns the account of an address, which is spelled as stored.
    func account(email: String) async throws(CloudError) -> StoredAccount?
    /// Returns the account of a phone number, which is spelled as stored.
    func account(phone: String) async throws(CloudError) -> StoredAccount?
    /// Returns the account that a container knows by a name: ``StoredAccount/userRecordName(of:in:)``.
    func account(userRecordName: String, in container: String) async throws(CloudError) -> StoredAccount?
    /// Returns all accounts, in the order of the bytes of their addresses. O(accounts).
    func accounts() async throws(CloudError) -> [StoredAccount]
    /// Returns whether there is no account.
    func isEmpty() async throws(CloudError) -> Bool

    /// As `CloudStorage.emptyLog()`.
    func emptyLog() async
}

extension AccountStorage {
    /// Does nothing: the storage has no log of its own.
    package func emptyLog() async {}

    /// Writes everything of an account except its address, whatever it was. A missing account is no error.
    package func update(_ account: StoredAccount) async throws(CloudError) { try await update(account, from: nil) }
}
