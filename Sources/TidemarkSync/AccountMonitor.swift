import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The treatment of records that are already here when an account signs in.
public enum SignInChoice: String, Codable, CaseIterable, Sendable {
    /// The records go to the account's cloud.
    case merge
    /// They are set aside.
    case apart
    /// They are deleted.
    case delete
    /// A person decides. Until then nothing is synchronised.
    case ask
}

/// The treatment of an account's records when it signs out, or another account signs in.
public enum SignOutChoice: String, Codable, CaseIterable, Sendable {
    /// The records are set aside, and can be restored.
    case quarantine
    /// The records stay.
    case keep
    /// They are deleted.
    case delete
}

/// Checks the account, and keeps the records of two accounts out of one store.
actor AccountMonitor {
    private let store: RecordStore
    private let database: any CloudDatabase
    private let state: @Sendable () -> AccountState
    private let signIn: SignInChoice
    private let signOut: SignOutChoice
    private let now: @Sendable () -> Int64

    init(
        store: RecordStore, database: any CloudDatabase, state: @escaping @Sendable () -> AccountState, signIn: SignInChoice,
        signOut: SignOutChoice, now: @escaping @Sendable () -> Int64
    ) {
        self.store = store
        self.database = database
        self.state = state
        self.signIn = signIn
        self.signOut = signOut
        self.now = now
    }

    enum Answer: Sendable {
        case available(CloudAccount)
        /// The account can't be used for the moment: nothing is deleted or set aside. Carries the cloud's error, if there was one.
        case unavailable(ContainerEvent.Failure, CloudError?)
        /// The account can't be used until a person acts.
        case stopped([ContainerEvent.Failure])
    }

    func check() async throws -> Answer {
        let switches = state().setupFailures
        guard switches.isEmpty else { return .stopped(switches) }
        let account: CloudAccount
        do {
            account = try await database.account()
        } catch {
            let failure = ContainerEvent.Failure(error, code: SyncErrorCode.noAccount)
            // A failure that does not concern the account is tried again, although a person may have to remove its cause.
            return ErrorReaction(error.code) == .ask ? .stopped([failure]) : .unavailable(failure, error)
        }
        switch account.status {
        case .available: break
        case .temporarilyUnavailable, .couldNotDetermine:
            return .unavailable(
                .init(
                    code: SyncErrorCode.noAccount, reason: "the account is not available for the moment", isPassing: true,
                    cause: .accountUnavailable), nil)
        case .noAccount:
            return .stopped([.init(code: SyncErrorCode.noAccount, reason: "no account is signed in", cause: .signedOut)])
        case .restricted:
            return .stopped([
                .init(
                    code: SyncErrorCode.noAccount,
                    reason: "an administrator of the cloud has disabled the account. Changes made here stay, and are sent later",
                    cause: .accountRestricted)
            ])
        }
        guard let user = account.userRecordName else {
            return .stopped([
                .init(code: SyncErrorCode.noAccount, reason: "the cloud does not name the account that is signed in")
            ])
        }
        if let failure = try await adopt(user) { return .stopped([failure]) }
        return .available(account)
    }

    private static let another = "another account has signed in"

    /// Makes a store belong to an account.
    private func adopt(_ user: String) async throws -> ContainerEvent.Failure? {
        let known = try await store.syncState().user
        guard known != user else { return nil }
        // Records that others share with one account are of no use to another.
        if store.scope == .shared {
            if known != nil {
                if signOut == .delete { try await store.wipe() } else { try await store.setAside(reason: Self.another) }
            }
            try await store.forgetCloud(user: user)
            return nil
        }
        if known != nil {
            switch signOut {
            case .quarantine: try await store.setAside(reason: Self.another)
            case .delete: try await store.wipe()
            case .keep: try await store.forgetCloud(user: nil)
            }
        }
        if try await store.hasRecords() {
            switch signIn {
            case .merge: break
            case .apart: try await store.setAside(reason: "kept apart from the account that has signed in")
            case .delete: try await store.wipe()
            case .ask:
                return .init(
                    code: SyncErrorCode.notInitialized,
                    reason:
                        "the container has records that no account has yet. Say what is to become of them: merge, apart or delete",
                    cause: .undecided)
            }
        }
        try await store.forgetCloud(user: user)
        return nil
    }
}
