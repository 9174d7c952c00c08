import Foundation
package import TidemarkCloud
package import TidemarkModel

/// The rules for the accounts of a cloud. An ``AccountStorage`` keeps the rows.
package struct Accounts: Sendable {
    /// Where the rows are.
    package let storage: any AccountStorage
    /// Makes the identifier of a new account from its address.
    private let newID: @Sendable (String) -> String

    /// - Parameter newID: Makes the identifier of a new account from its address. Simulations pass one whose results repeat.
    package init(
        _ storage: any AccountStorage,
        newID: @escaping @Sendable (String) -> String = { _ in UUID().uuidString.lowercased() }
    ) {
        (self.storage, self.newID) = (storage, newID)
    }

    /// Checks that an account can have an address.
    ///
    /// - Throws: `CloudError` `invalidArguments`.
    package static func check(_ email: String) throws(CloudError) {
        guard email.contains("@"), (3...255).contains(email.utf8.count), email.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f }) else {
            throw CloudError(.invalidArguments, "'\(email.prefix(100))' is no address of an account")
        }
    }

    /// Adds an account. An account that has the address already is returned as it is.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a malformed address or number, and for a number that another account has.
    package func add(_ email: String, phone: String?, name: PersonName?, quota: Int64) async throws(CloudError) -> StoredAccount {
        try await storage.add(try account(email, phone: phone, name: name, quota: quota))
    }

    /// Adds an account, unless one has the address already.
    ///
    /// - Returns: The account; `nil` where another one has the address.
    /// - Throws: `CloudError` `invalidArguments` for a malformed address.
    package func addNew(_ email: String, name: PersonName?, quota: Int64) async throws(CloudError) -> StoredAccount? {
        let account = try account(email, phone: nil, name: name, quota: quota)
        return try await storage.add(account).id == account.id ? account : nil
    }

    private func account(
        _ email: String, phone: String?, name: PersonName?, quota: Int64
    ) throws(CloudError) -> StoredAccount {
        try Self.check(email)
        let address = UserLookUp.spelled(email)
        return StoredAccount(
            id: newID(address), email: address, phone: try Self.number(phone), name: name, quota: quota, status: .available)
    }

    /// Changes everything of an account except its address.
    ///
    /// - Throws: `CloudError` `invalidArguments` for a malformed number, and for a number that another account has.
    package func update(_ account: StoredAccount) async throws(CloudError) {
        var account = account
        account.phone = try Self.number(account.phone)
        try await storage.update(account, from: nil)
    }

    /// How often ``update(id:_:)`` tries before it gives up on an account that others keep changing.
    private static let tries = 10

    /// Changes a part of an account, except its address, and keeps what others change at the same time.
    ///
    /// - Parameter change: Changes the account. It is called again, with the newest account, where another writer was faster.
    /// - Returns: The account before and after; `nil` where there is none.
    /// - Throws: `CloudError` `invalidArguments` for a malformed number, and for a number that another account has; `zoneBusy` where others
    ///   change the account all the time.
    package func update(
        id: String, _ change: @Sendable (inout StoredAccount) -> Void
    ) async throws(CloudError) -> (before: StoredAccount, after: StoredAccount)? {
        for _ in 0..<Self.tries {
            guard let before = try await storage.account(id: id) else { return nil }
            var after = before
            change(&after)
            after.phone = try Self.number(after.phone)
            guard after != before else { return (before, after) }
            if try await storage.update(after, from: before) { return (before, after) }
        }
        throw CloudError(.zoneBusy, forClients: "the account is being changed by others", retryAfter: .seconds(1))
    }

    /// Gives an account another address. A pending invitation belongs to the account that has its address now.
    ///
    /// - Returns: The address as it is stored.
    /// - Throws: `CloudError` `invalidArguments` for a malformed address, and for one that another account has.
    package func setAddress(_ email: String, of id: String) async throws(CloudError) -> String {
        try Self.check(email)
        let address = UserLookUp.spelled(email)
        guard try await storage.setAddress(address, of: id) else {
            throw CloudError(.invalidArguments, "another account has this address")
        }
        return address
    }

    /// Removes an account. A missing account is no error.
    package func remove(_ account: StoredAccount) async throws(CloudError) { try await storage.remove(account.id) }

    /// Returns the account of an identifier; `nil` where there is none.
    package func find(id: String) async throws(CloudError) -> StoredAccount? { try await storage.account(id: id) }

    /// Returns the account of an address; `nil` where there is none. Case and Unicode's normal form make no difference.
    package func find(_ email: String) async throws(CloudError) -> StoredAccount? {
        try await storage.account(email: UserLookUp.spelled(email))
    }

    /// Returns the account that a look-up finds. A user record name is the container's name for the account.
    package func find(_ lookUp: UserLookUp, in container: String) async throws(CloudError) -> StoredAccount? {
        switch lookUp {
        case .emailAddress(let address): try await find(address)
        case .phoneNumber(let number): try await storage.account(phone: number)
        case .userRecordName(let name): try await storage.account(userRecordName: name, in: container)
        }
    }

    /// Returns all accounts, in the order of the bytes of their addresses. O(accounts).
    package func all() async throws(CloudError) -> [StoredAccount] { try await storage.accounts() }

    /// Returns whether there is no account.
    package func isEmpty() async throws(CloudError) -> Bool { try await storage.isEmpty() }

    private static func number(_ phone: String?) throws(CloudError) -> String? {
        guard let phone else { return nil }
        guard let number = UserLookUp.phoneNumber(phone).normalized else {
            throw CloudError(.invalidArguments, "'\(phone.prefix(100))' is no phone number: + and the country's, then the rest")
        }
        return number.value
    }
}

extension StoredAccount {
    /// An account's name in a container: `_` and 32 hexadecimal digits.
    package static func userRecordName(of id: String, in container: String) -> String {
        "_" + AssetDigest.asset(of: Data("\(id) \(container)".utf8)).digest.prefix(32)
    }
}

extension CloudError {
    /// Makes the error that an ``AccountStorage`` throws for a number that another account has.
    package static func takenNumber(_ phone: String) -> CloudError {
        CloudError(.invalidArguments, "another account has the phone number \(phone)")
    }
}
