public import TidemarkModel

/// The place of new records of an ``EditingContext``. Records that are in a store already stay where they are.
public enum InsertionTarget: Hashable, Sendable {
    /// A store, outside of all shares. A save with the shared store as target throws, since new records there need a share.
    case store(StoreScope)
    /// A share, of the user or of another person.
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
    /// The newest state, at each fetch.
    case unpinned
    /// The state at the moment of the call that sets it.
    case current
    /// The state of a snapshot of the same container.
    case snapshot(ContainerSnapshot)
}
