public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// Which contents of assets come together with the records that name them.
///
/// The others stay in the cloud until they are asked for, by `PersistentContainer.download(_:priority:progress:)`, `ContainerSync` or
/// `tidemark assets download`. A record whose contents are not here is fetched, saved, merged, shared and moved like any other.
public enum AssetDownloads: Hashable, Sendable {
    /// All contents come with their records. Contents that another choice has left in the cloud stay there until they are asked
    /// for.
    case all
    /// Contents of at most so many bytes come, such as thumbnails.
    case upTo(bytes: Int64)
    /// No contents come.
    case onDemand

    /// Whether a content of a size comes with its record.
    func includes(_ size: Int64) -> Bool {
        switch self {
        case .all: true
        case .upTo(let bytes): size <= bytes
        case .onDemand: false
        }
    }
}

/// The settings of a synchronisation.
public struct SyncConfiguration: Sendable {
    /// The zone of the private database that has the container's records.
    public var zoneName = "TidemarkZone"
    /// The merge policy of a type, by its name; `nil` for those of the types and of the container that a `PersistentContainer` knows, and for
    /// `mergeByPropertyObjectTrump` without one. All devices should have the same.
    public var mergePolicy: (@Sendable (String) -> MergePolicy)?
    /// Whether the container may be synchronised at all: see ``AccountState``.
    public var accountState: @Sendable () -> AccountState = { AccountState(isSignedIn: true) }
    /// The treatment of records that are already here when an account signs in.
    public var signIn: SignInChoice = .merge
    /// The treatment of an account's records when another account signs in.
    public var signOut: SignOutChoice = .quarantine
    /// The name that history gives the transactions.
    public var author = "cloud"
    /// The contents of assets that come together with the records that name them. The others come when they are asked for.
    public var assets = AssetDownloads.all
    /// How many bytes of assets the container keeps on the disk; `nil` for no limit. After a synchronisation, contents that the cloud has are
    /// evicted until the others fit, the least recently used first. Contents that the cloud does not have yet stay.
    public var assetLimit: Int64?
    /// How long ``SyncEngine/run()`` waits after a save before it sends, so that the saves of that time go together; `nil` for half a second in
    /// a container that synchronises by itself, and for none elsewhere.
    public var exportDelay: Duration?
    /// Returns, for the name of a record type, the field whose value is the title of a share of such a record; `nil` for types whose
    /// shares have a title of their own. A `PersistentContainer` returns what its types say, by `Record.shareTitle`.
    public var shareTitleField: @Sendable (String) -> String? = { _ in nil }

    /// Makes a configuration with the default settings.
    public init() {}

    /// The policy of each type.
    var policy: @Sendable (String) -> MergePolicy { mergePolicy ?? { _ in .mergeByPropertyObjectTrump } }
}

/// The result of a synchronisation.
public struct SyncReport: Hashable, Sendable {
    /// Changes that were imported; a merged record counts twice.
    public var imported = 0
    /// Changes that the cloud has acknowledged.
    public var exported = 0
    /// Fields, or deletions, that a merge policy has resolved.
    public var conflicts = 0
    /// Changes that are still to be sent, and the reasons.
    public var outbox = OutboxSummary()
    /// Records from the cloud that could not be imported, or not fully.
    public var deferred = 0
    /// Saves that the cloud has refused permanently. They were reverted here, and are kept until they are discarded.
    public var refused = 0
    /// The failure that ended the synchronisation early; `nil` if there was none.
    public var failure: ContainerEvent.Failure?

    /// Makes a report of a synchronisation that has done nothing.
    public init() {}

    /// Whether nothing waits to be sent and nothing failed; ``deferred`` counts fetched records that could not be
    /// applied yet, ``refused`` changes that were reverted.
    public var isComplete: Bool { failure == nil && outbox.pending == 0 }
}
