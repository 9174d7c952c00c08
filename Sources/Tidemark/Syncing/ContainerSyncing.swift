import TidemarkModel
import TidemarkSync

/// The synchronisation of a container in this process, with its events.
final class ContainerSyncing: Sendable {
    private struct State {
        var automatic: AutomaticSync?
        /// The synchronisation that the program has made. The program keeps it.
        weak var manual: ContainerSync?
        weak var engine: SyncEngine?
        var isClosed = false
    }

    private let state = LockedValue(State())
    /// Distributes the events of all synchronisations.
    let events = EventBroadcaster()
    /// Distributes the assets whose contents were downloaded.
    let downloads = AssetArrivals()

    /// The automatic synchronisation; `nil` if it is not started.
    var automatic: AutomaticSync? { state.withLock(\.automatic) }

    /// Starts an automatic synchronisation, in place of the present one. Does nothing after the container was closed.
    func start(_ make: (_ previous: AutomaticSync?) -> AutomaticSync) {
        state.withLock { state in
            guard !state.isClosed else { return }
            state.automatic = make(state.automatic)
        }
    }

    /// Removes the automatic synchronisation, and returns it, so that the caller can stop it.
    ///
    /// - Parameter closing: Whether no other may be started afterwards.
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

    /// The open synchronisation of both stores; `nil` if there is none.
    var sync: ContainerSync? {
        state.withLock { state in
            if let sync = state.automatic?.sync, sync.isOpen { return sync }
            return state.manual.flatMap { $0.isOpen ? $0 : nil }
        }
    }

    /// The open engines.
    var engines: [SyncEngine] {
        if let sync { return [sync.privateEngine, sync.sharedEngine] }
        return state.withLock { state in state.engine.flatMap { $0.isOpen ? [$0] : nil } ?? [] }
    }

    /// The stores that are synchronised; `nil` if none is.
    var scopes: Set<StoreScope>? {
        if sync != nil || automatic != nil { return [.private, .shared] }
        return state.withLock { $0.engine?.isOpen ?? false } ? [.private] : nil
    }
}
