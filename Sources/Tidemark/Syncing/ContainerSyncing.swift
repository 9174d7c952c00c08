import TidemarkModel
import TidemarkSync

/// What synchronises a container in this process, and who hears of it.
final class ContainerSyncing: Sendable {
    private struct State {
        var automatic: AutomaticSync?
        /// Of the program, which keeps it.
        weak var manual: ContainerSync?
        weak var engine: SyncEngine?
        var isClosed = false
    }

    private let state = LockedValue(State())
    /// Gets the events of all of them.
    let events = EventBroadcaster()
    /// Gets the assets whose contents have come.
    let downloads = AssetArrivals()

    /// What synchronises the container by itself.
    var automatic: AutomaticSync? { state.withLock(\.automatic) }

    /// Starts what synchronises the container by itself, in place of what did so before. Does nothing where the container is closed.
    func start(_ make: (_ previous: AutomaticSync?) -> AutomaticSync) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.automatic = make(state.automatic)
        }
    }

    /// Removes what synchronises the container by itself, for the caller to stop.
    ///
    /// - Parameter closing: Whether none may come after it.
    func remove(closing: Bool = false) -> AutomaticSync? {
        state.withLock { state in
            state.isClosed = state.isClosed || closing
            defer { state.automatic = nil }
            return state.automatic
        }
    }

    func note(_ sync: ContainerSync) {
        sync.broadcaster.forward(to: events)
        state.withLock { $0.manual = sync }
    }

    func note(_ engine: SyncEngine) {
        engine.forwardEvents(to: events)
        state.withLock { $0.engine = engine }
    }

    /// What synchronises both stores, or could at once.
    var sync: ContainerSync? {
        state.withLock { state in
            if let sync = state.automatic?.sync, sync.isOpen { return sync }
            return state.manual.flatMap { $0.isOpen ? $0 : nil }
        }
    }

    /// The engines that synchronise stores, or could at once.
    var engines: [SyncEngine] {
        if let sync { return [sync.privateEngine, sync.sharedEngine] }
        return state.withLock { state in state.engine.flatMap { $0.isOpen ? [$0] : nil } ?? [] }
    }

    /// The stores that are synchronised; `nil` where none is.
    var scopes: Set<StoreScope>? {
        if sync != nil || automatic != nil { return [.private, .shared] }
        return state.withLock { $0.engine?.isOpen ?? false } ? [.private] : nil
    }
}
