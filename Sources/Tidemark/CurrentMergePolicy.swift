import TidemarkModel

/// The merge policy of a container. The container's synchronisation reads it, too.
final class CurrentMergePolicy: Sendable {
    private let policy: LockedValue<MergePolicy>

    init(_ policy: MergePolicy) { self.policy = LockedValue(policy) }

    var value: MergePolicy {
        get { policy.withLock(\.self) }
        set { policy.withLock { $0 = newValue } }
    }
}
