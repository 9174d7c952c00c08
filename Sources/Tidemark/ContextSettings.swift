public import TidemarkModel

/// Where an ``EditingContext`` puts new records. Records that are in a store already stay where they are.
public enum InsertionTarget: Hashable, Sendable {
    /// A store, outside of all shares. New records of the shared store need a share: a save throws for this one.
    case store(StoreScope)
    /// A share, one's own or somebody else's.
    case share(Share)
    /// A zone that the store has, such as that of a share which has ended. `StoreReader.zones()` lists them.
    case zone(ZoneName, in: StoreScope)

    /// The store.
    var scope: StoreScope {
        switch self {
        case .store(let scope), .zone(_, let scope): scope
        case .share(let share): share.scope
        }
    }
}

/// The state of the stores that an ``EditingContext`` reads. As `NSQueryGenerationToken`.
public enum QueryGeneration: Sendable {
    /// The newest one, at each fetch.
    case unpinned
    /// The one of the moment in which it is set.
    case current
    /// That of a snapshot of the same container.
    case snapshot(ContainerSnapshot)
}
