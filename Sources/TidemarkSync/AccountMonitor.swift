import TidemarkCloud
import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// What becomes of records that are here when an account comes to them.
public enum SignInChoice: String, Codable, CaseIterable, Sendable {
    /// They go to the account's cloud.
    case merge
    /// They are set aside.
    case apart
    /// They are deleted.
    case delete
    /// A person is to be asked: until then nothing is synchronised.
    case ask
}

/// What becomes of an account's records when it goes, or another one comes.
public enum SignOutChoice: String, Codable, CaseIterable, Sendable {
    /// They are set aside, and can be restored.
    case quarantine
    /// They stay.
    case keep
    /// They are deleted.
    case delete
}

/// Looks at the account, and sees to it that a store never has two accounts' records.
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
        /// For the moment: nothing is deleted, and nothing set aside. With what the cloud has answered, where that is an error.
        case unavailable(ContainerEvent.Failure, CloudError?)
        /// Until somebody does something.
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
            // What is not the account's is tried again, though it may take somebody to mend it.
            return ErrorReaction(error.code) == .ask ? .stopped([failure]) : .unavailable(failure, error)
        }
        switch account.status {
        case .available: break
        case .temporarilyUnavailable, .couldNotDetermine:
            return .unavailable(
                .init(code: SyncErrorCode.noAccount, reason: "the account is not available for the moment", isPassing: true), nil)
        case .noAccount:
            return .stopped([.init(code: SyncErrorCode.noAccount, reason: "no account is signed in")])
        case .restricted:
            return .stopped([.init(code: SyncErrorCode.noAccount, reason: "the account may not be used here")])
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

    /// Makes the store that of an account.
    private func adopt(_ user: String) async throws -> ContainerEvent.Failure? {
        let known = try await store.syncState().user
        guard known != user else { return nil }
        // What others share with one account is nothing to another.
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
                        "the container has records that no account has yet. Say what is to become of them: merge, apart or delete"
                )
            }
        }
        try await store.forgetCloud(user: user)
        return nil
    }
}
