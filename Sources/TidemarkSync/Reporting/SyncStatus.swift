public import TidemarkModel
import TidemarkSQLite
public import TidemarkStore

/// Whether a container and its cloud have the same records, and what is missing, as far as the container knows.
///
/// ```swift
/// let status = try journal.syncStatus()
/// if !status.isInSync { for obstacle in status.obstacles { print(obstacle) } }
/// ```
///
/// A container does not know what others have changed in the cloud since its last fetch. Fetch first where that matters.
public struct SyncStatus: Hashable, Sendable {
    /// Something that is missing.
    public enum Obstacle: Hashable, Sendable {
        /// The private store belongs to no account yet.
        case noAccount
        /// The first fetch has not been completed.
        case notFetched(StoreScope)
        /// The cloud has reported changes that are not fetched yet, or everything is being fetched again.
        case changesToFetch(StoreScope)
        /// Changes wait to be sent. Of these, `blocked` were refused, or wait for a refused one.
        case changesToSend(StoreScope, count: Int, blocked: Int)
        /// Fetched records could not be applied, or not fully. Conflicts that are left to a person are among them.
        case recordsDeferred(StoreScope, count: Int)
        /// Changes wait in a store that nothing synchronises: this program synchronises only the other one, or never has this one.
        case notSynchronized(StoreScope)
        /// The last set-up or export has failed.
        case failed(StoreScope, ContainerEvent.Failure)
    }

    /// What is missing, the private store first.
    public let obstacles: [Obstacle]

    /// Whether nothing is missing.
    public var isInSync: Bool { obstacles.isEmpty }

    /// The number of changes that wait to be sent.
    public var changesToSend: Int {
        obstacles.reduce(0) { sum, obstacle in
            if case .changesToSend(_, let count, _) = obstacle { sum + count } else { sum }
        }
    }

    /// Makes a status of what is missing.
    public init(_ obstacles: [Obstacle]) { self.obstacles = obstacles }

    /// Reads the status of a container.
    ///
    /// - Throws: ``StoreError``.
    /// - Complexity: A look at each row that waits.
    public init(of container: ContainerDirectory) throws {
        let scopes = ContainerDirectory.scopes.filter { container.hasStore($0) }
        try self.init(of: scopes.map { try StoreReader(container: container, scope: $0) }, synchronized: nil)
    }

    /// - Parameter scopes: The stores that this process synchronises; `nil` where it synchronises none, and another one may.
    package init(of readers: [StoreReader], synchronized scopes: Set<StoreScope>?) throws {
        obstacles = try readers.flatMap { try Self.obstacles($0, scopes) }
    }

    private static func obstacles(_ reader: StoreReader, _ scopes: Set<StoreScope>?) throws -> [Obstacle] {
        let scope = reader.scope
        let (state, outbox) = (try reader.syncState(), try reader.outbox())
        var obstacles: [Obstacle] = []
        if state.user == nil {
            if scope == .private {
                obstacles.append(.noAccount)
            } else if outbox.pending == 0 {
                // No shared zone is here.
                return []
            }
        } else if scope == .private, !state.initialImportIsComplete {
            obstacles.append(.notFetched(scope))
        }
        let zones = try reader.zones().filter { scope == .private || $0.name != .default }
        if state.user != nil, !obstacles.contains(.notFetched(scope)),
            try zones.map({ try reader.syncState(zone: $0.id) }).contains(where: {
                $0.hasNewChanges || $0.isRefetching || $0.awaitsFirstPage
            }) || reader.awaitsRemadeFields()
        {
            obstacles.append(.changesToFetch(scope))
        }
        if outbox.pending > 0 {
            obstacles.append(.changesToSend(scope, count: outbox.pending, blocked: outbox.blocked))
            let isLeftOut = scopes.map { !$0.contains(scope) } ?? (state.user == nil && scope == .shared)
            if isLeftOut { obstacles.append(.notSynchronized(scope)) }
        }
        let deferred = try reader.deferredRecords().count
        if deferred > 0 { obstacles.append(.recordsDeferred(scope, count: deferred)) }
        if let failure = try reader.lastFailure()?.failure { obstacles.append(.failed(scope, failure)) }
        return obstacles
    }
}

extension SyncStatus.Obstacle: CustomStringConvertible {
    /// The obstacle in words for people, in English.
    public var description: String {
        func records(_ count: Int) -> String { count == 1 ? "1 record" : "\(count) records" }
        return switch self {
        case .noAccount: "no account has synchronised the container yet"
        case .notFetched(let scope): "\(scope.name) store: the first fetch is not complete"
        case .changesToFetch(let scope): "\(scope.name) store: the cloud has changes that are not fetched yet"
        case .changesToSend(let scope, let count, let blocked):
            "\(scope.name) store: \(count == 1 ? "1 change waits" : "\(count) changes wait") to be sent"
                + (blocked > 0 ? ", \(blocked) of them refused or waiting for a refused one" : "")
        case .recordsDeferred(let scope, let count):
            "\(scope.name) store: \(records(count)) of the cloud could not be applied fully"
        case .notSynchronized(let scope): "\(scope.name) store: nothing synchronises it"
        case .failed(let scope, let failure):
            "\(scope.name) store: the last synchronisation failed: \(failure.code): \(failure.reason)"
        }
    }
}
