import TidemarkModel

/// What happened in a test, in order, whichever thread told it.
public final class StepLog: Sendable {
    private let steps = LockedValue<[String]>([])

    public init() {}

    public var all: [String] { steps.withLock { $0 } }

    public func add(_ step: String) { steps.withLock { $0.append(step) } }
}
