import Synchronization
import TidemarkModel

/// The merge policy of a container, which its synchronisations ask as well.
final class CurrentMergePolicy: Sendable {
    private let policy: Mutex<MergePolicy>

    init(_ policy: MergePolicy) { self.policy = Mutex(policy) }

    var value: MergePolicy {
        get { policy.withLock(\.self) }
        set { policy.withLock { $0 = newValue } }
    }
}
