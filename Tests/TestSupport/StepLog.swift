import TidemarkModel

/// The steps of a test in the order in which any thread added them.
public final class StepLog: Sendable {
    private let steps = LockedValue<[String]>([])

    public init() {}

    public var all: [String] { steps.withLock { $0 } }

    public func add(_ step: String) { steps.withLock { $0.append(step) } }
}
