public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// How a container is synchronised.
public struct SyncConfiguration: Sendable {
    /// The zone of the private database that its records are in.
    public var zoneName = "TidemarkZone"
    /// The merge policy of a type, by its name. All devices should have the same.
    public var mergePolicy: @Sendable (String) -> MergePolicy = { _ in .mergeByPropertyObjectTrump }
    /// Whether it may be synchronised at all: see ``AccountState``.
    public var accountState: @Sendable () -> AccountState = { AccountState(isSignedIn: true) }
    /// What becomes of records that are here when an account comes to them.
    public var signIn: SignInChoice = .merge
    /// What becomes of an account's records when another one comes.
    public var signOut: SignOutChoice = .quarantine
    /// The name that history gives the transactions.
    public var author = "cloud"

    /// Makes the configuration that a program has which sets nothing.
    public init() {}
}

/// What a synchronisation has come to.
public struct SyncReport: Hashable, Sendable {
    /// Changes that were taken in; a merged record counts twice.
    public var imported = 0
    /// Changes that the cloud has acknowledged.
    public var exported = 0
    /// Fields, or deletions, that a merge policy has settled.
    public var conflicts = 0
    /// What is still to be sent, and why.
    public var outbox = OutboxSummary()
    /// Records from the cloud that could not be taken in, or not whole.
    public var deferred = 0
    /// Saves that the cloud has refused permanently. The store has reverted them, and keeps them until they are discarded.
    public var refused = 0
    /// Why it did not come to its end; `nil` when it did.
    public var failure: ContainerEvent.Failure?

    /// Makes a report of a synchronisation that has done nothing.
    public init() {}

    /// Whether nothing waits to be sent and nothing failed; ``deferred`` counts fetched records that could not be
    /// applied yet, ``refused`` changes that the store has reverted.
    public var isComplete: Bool { failure == nil && outbox.pending == 0 }
}
