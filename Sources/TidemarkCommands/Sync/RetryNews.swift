import TidemarkModel

/// Messages to a person at a terminal while the tool waits for a cloud: each reason for the wait, once.
struct RetryNews {
    /// How long the tool tries again: seconds. With 0, nothing is tried again.
    let patience: Double
    private var told: Set<ContainerEvent.Failure> = []

    init(patience: Double) { self.patience = patience }

    /// The message on an event; `nil` if it has no new reason.
    mutating func line(_ event: ContainerEvent) -> String? {
        guard patience > 0, let failure = event.failure, failure.isPassing else { return nil }
        // If the cloud asks for a longer wait than the patience, nothing is tried again.
        guard failure.retryAfter.map({ $0 <= .seconds(patience) }) ?? true, told.insert(failure).inserted else { return nil }
        return "note: trying for up to \(Wording.duration(.seconds(patience))) in all: \(failure.reason)"
    }
}
