package import Metrics

/// Figures of a pool and its transactions, by swift-metrics.
package final class PostgresMetrics: Sendable {
    private let inUse: Meter
    private let idle: Meter
    private let waiting: Meter
    private let waits: Counter
    private let waitTimeouts: Counter
    private let waitTime: Timer
    private let opened: Counter
    private let openingFailed: Counter
    private let lost: Counter
    private let reruns: Counter
    private let unknownCommits: Counter

    /// - Parameter factory: Makes the metrics; `nil` for the one of the process.
    package init(_ factory: (any MetricsFactory)? = nil) {
        let factory = factory ?? MetricsSystem.factory
        func counter(_ name: String) -> Counter { Counter(label: "tidemark_database_\(name)", factory: factory) }
        func meter(_ name: String) -> Meter { Meter(label: "tidemark_database_\(name)", factory: factory) }
        (inUse, idle, waiting) = (meter("connections_in_use"), meter("connections_idle"), meter("waiting"))
        (waits, waitTimeouts) = (counter("waits_total"), counter("wait_timeouts_total"))
        waitTime = Timer(label: "tidemark_database_wait_seconds", factory: factory)
        (opened, openingFailed) = (counter("connections_opened_total"), counter("connections_failed_total"))
        (lost, reruns) = (counter("connections_lost_total"), counter("transactions_rerun_total"))
        unknownCommits = counter("commits_unknown_total")
    }

    func pool(inUse: Int, idle: Int, waiting: Int) {
        self.inUse.set(inUse)
        self.idle.set(idle)
        self.waiting.set(waiting)
    }

    func waited(_ time: Duration, isServed: Bool) {
        waits.increment()
        if !isServed { waitTimeouts.increment() }
        waitTime.recordNanoseconds(time.milliseconds * 1_000_000)
    }

    func opened(_ isOpen: Bool) { (isOpen ? opened : openingFailed).increment() }
    func lostConnection() { lost.increment() }
    func rerun() { reruns.increment() }
    func unknownCommit() { unknownCommits.increment() }
}
