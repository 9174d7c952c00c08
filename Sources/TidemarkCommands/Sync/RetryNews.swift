import TidemarkModel

/// What somebody at a terminal is told while a cloud is waited for: why, once for each reason.
struct RetryNews {
    /// Seconds; with none nothing is tried again.
    let patience: Double
    private var told: Set<ContainerEvent.Failure> = []

    init(patience: Double) { self.patience = patience }

    /// What is to be told of an event; `nil` where there is no news.
    mutating func line(_ event: ContainerEvent) -> String? {
        guard patience > 0, let failure = event.failure, failure.isPassing else { return nil }
        // What a cloud wants one to wait longer for is not tried again.
        guard failure.retryAfter.map({ $0 <= .seconds(patience) }) ?? true, told.insert(failure).inserted else { return nil }
        return "note: trying for up to \(Wording.duration(.seconds(patience))) in all: \(failure.reason)"
    }
}
