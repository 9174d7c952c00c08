import TidemarkContainers
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

/// The progress of the copying of a container. Several threads report it.
final class CopyingBar: Sendable {
    private let bar: LockedValue<ProgressBar>

    init(_ mode: ProgressMode) { bar = LockedValue(ProgressBar(mode)) }

    func show(_ state: CopyProgress) {
        let label = state.total > 0 ? "\(state.phase.rawValue)  \(Wording.bytes(Int(state.bytes)))" : state.phase.rawValue
        bar.withLock { $0.show(label, done: Int(state.bytes), total: state.total > 0 ? Int(state.total) : nil) }
    }

    func finish() { bar.withLock { $0.finish() } }
}
