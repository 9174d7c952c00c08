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
    private let lockTime: Timer
    private let lockTimeouts: Counter
    private let isListening: Meter

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
        lockTime = Timer(label: "tidemark_database_lock_wait_seconds", factory: factory)
        lockTimeouts = counter("lock_timeouts_total")
        isListening = meter("listening")
    }

    /// What kind of a figure a metric is.
    package enum Kind: Sendable {
        case counter, gauge
        /// Of seconds.
        case timer
    }

    /// The metrics' names, kinds and help texts, for a factory that has to know them before the metrics are made.
    package static let families: [(label: String, kind: Kind, help: String)] = [
        ("tidemark_database_connections_in_use", .gauge, "Connections to the database that a request uses."),
        ("tidemark_database_connections_idle", .gauge, "Connections to the database that nobody uses."),
        ("tidemark_database_waiting", .gauge, "Requests that wait for a connection to the database."),
        ("tidemark_database_waits_total", .counter, "Times that a request waited for a connection to the database."),
        ("tidemark_database_wait_timeouts_total", .counter, "Times that no connection was free in time."),
        ("tidemark_database_wait_seconds", .timer, "How long requests waited for a connection to the database."),
        ("tidemark_database_connections_opened_total", .counter, "Connections to the database that were opened."),
        ("tidemark_database_connections_failed_total", .counter, "Times that no connection to the database could be opened."),
        ("tidemark_database_connections_lost_total", .counter, "Connections that broke while they were used."),
        (
            "tidemark_database_transactions_rerun_total", .counter,
            "Transactions that ran again, after a serialization failure, a deadlock or a lost connection."
        ),
        ("tidemark_database_commits_unknown_total", .counter, "Commits of which the database did not tell the outcome."),
        (
            "tidemark_database_lock_wait_seconds", .timer,
            "How long writes waited for the locks of their owners, with the round trip that takes them."
        ),
        ("tidemark_database_lock_timeouts_total", .counter, "Times that a lock was held by others for too long."),
        (
            "tidemark_database_listening", .gauge,
            "Whether the server hears of changes by other servers at once (1), or later (0)."
        ),
    ]

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

    /// Records how long a write waited for the locks of its owners, whether it got them or not.
    func locked(after time: Duration) { lockTime.recordNanoseconds(Int64(time / .nanoseconds(1))) }
    func lockTimeout() { lockTimeouts.increment() }
    /// Records whether the connection for notifications is there.
    func listens(_ isConnected: Bool) { isListening.set(isConnected ? 1 : 0) }
}
