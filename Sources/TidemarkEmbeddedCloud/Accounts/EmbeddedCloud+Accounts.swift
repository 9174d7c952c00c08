public import TidemarkCloud
public import TidemarkCloudEngine
public import TidemarkModel

/// The accounts of a cloud.
extension EmbeddedCloud {
    /// Checks that an account can have an address, and that a container can have a name. Makes neither.
    ///
    /// - Throws: `CloudError` `invalidArguments`.
    public static func check(email: String, container: String) throws(CloudError) {
        try Accounts.check(email)
        try check(container: container)
    }

    /// Adds an account. An account that has the address already is returned as it is.
    ///
    /// - Parameters:
    ///   - email: An address. Case and Unicode's normal form make no difference.
    ///   - phone: A number, with `+` and the country's, by which others can find and invite the person.
    ///   - name: The name that participants of the person's shares see.
    ///   - quota: The bytes that the account may store in each container and environment.
    /// - Throws: `CloudError` `invalidArguments` for a malformed address or number, and for a number that another account has;
    ///   `zoneBusy`; `internalError`.
    @discardableResult
    public func addAccount(
        _ email: String, phone: String? = nil, name: PersonName? = nil, quota: Int64 = .max
    ) async throws(CloudError) -> StoredAccount {
        try await accounts.add(email, phone: phone, name: name, quota: quota)
    }

    /// Adds an account, unless one has the address already.
    ///
    /// - Parameter quota: The bytes that the account may store in each container and environment.
    /// - Returns: The account; `nil` where another one has the address.
    /// - Throws: `CloudError` as ``addAccount(_:phone:name:quota:)`` does.
    package func addNewAccount(_ email: String, name: PersonName?, quota: Int64) async throws(CloudError) -> StoredAccount? {
        try await accounts.addNew(email, name: name, quota: quota)
    }

    /// Returns the account of an address; `nil` where there is none. Case and Unicode's normal form make no difference.
    ///
    /// - Throws: `CloudError` `internalError`.
    public func account(_ email: String) async throws(CloudError) -> StoredAccount? { try await accounts.find(email) }

    /// Returns the account of an identifier; `nil` where there is none.
    public func account(id: String) async throws(CloudError) -> StoredAccount? { try await accounts.find(id: id) }

    /// Returns all accounts, in the order of their addresses. O(accounts).
    public func allAccounts() async throws(CloudError) -> [StoredAccount] { try await accounts.all() }

    /// Removes an account unless something was stored for it.
    package func removeIfUnused(_ account: StoredAccount) async throws(CloudError) {
        for (name, environment) in try await containers() {
            let user = Self.userRecordName(account.id, in: name)
            let zones = try await openedContainer(name, environment).engine.storage.read { rows throws(CloudError) in
                try rows.zones(of: user, after: -1, limit: 1)
            }
            guard zones.isEmpty else { return }
        }
        try await accounts.remove(account)
    }

    /// Returns whether the cloud has no account.
    package func isUnused() async throws(CloudError) -> Bool { try await accounts.isEmpty() }

    /// Changes an account's phone number, name, quota, status, and whether others can find it. The account is identified by
    /// ``StoredAccount/id``; the address can't change.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a malformed number or a number that another account has; `zoneBusy`;
    ///   `internalError`.
    public func update(_ account: StoredAccount) async throws(CloudError) { try await accounts.update(account) }

    /// Changes a part of an account, except its address, and keeps what others change at the same time.
    ///
    /// - Parameter change: Changes the account. It is called again, with the newest account, where another writer was faster.
    /// - Returns: The account before and after; `nil` where there is none.
    /// - Throws: As ``update(_:)``.
    package func update(
        id: String, _ change: @Sendable (inout StoredAccount) -> Void
    ) async throws(CloudError) -> (before: StoredAccount, after: StoredAccount)? {
        try await accounts.update(id: id, change)
    }

    /// Returns the account that a container knows by a name; `nil` where there is none.
    package func account(userRecordName: String, in container: String) async throws(CloudError) -> StoredAccount? {
        try await accounts.find(.userRecordName(userRecordName), in: container)
    }

    /// Gives an account another address.
    ///
    /// - Returns: The address as it is stored.
    /// - Throws: `CloudError` `invalidArguments` for a malformed address, and for one that another account has.
    package func setAddress(_ email: String, of account: StoredAccount) async throws(CloudError) -> String {
        try await accounts.setAddress(email, of: account.id)
    }

    /// An account's name in a container: `_` and 32 hexadecimal digits.
    package static func userRecordName(_ account: String, in container: String) -> String {
        StoredAccount.userRecordName(of: account, in: container)
    }
}
