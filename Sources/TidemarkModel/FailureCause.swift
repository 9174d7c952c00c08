/// The kind of obstacle that ended a synchronisation. Core Data has one error code, 134400, for several of these kinds.
public enum FailureCause: String, Hashable, Codable, CaseIterable, Sendable {
    /// The cloud can't be reached: the device is offline, or the server is away.
    case offline
    /// The cloud was reached, and can't serve now.
    case cloudIsBusy
    /// No account is signed in, or its session has ended.
    case signedOut
    /// The account is switched off for this container.
    case switchedOff
    /// The account can't be used for the moment.
    case accountUnavailable
    /// The account may not be used here.
    case accountRestricted
    /// A person has to decide what to do with the records that belong to no account yet.
    case undecided
    /// Another process synchronises the container.
    case anotherSyncer
    /// The container is being synchronised already.
    case duplicateRequest
    /// The account has no room left.
    case quotaExceeded
    /// The account lacks the permission.
    case notPermitted
}

/// The account of a container has come, gone or changed. As `CKSyncEngine.Event.AccountChange`.
public enum AccountChange: Hashable, Sendable {
    /// An account has signed in; `user` is its name in the cloud's container.
    case signedIn(user: String)
    /// The account has signed out, or was switched off. Its records are still in the container.
    case signedOut(user: String)
    /// Another account has signed in.
    case switched(from: String, to: String)
}
