package import Metrics

/// Figures of the requests to a bucket, by swift-metrics.
package final class S3Metrics: Sendable {
    private let time: Timer
    private let retries: Counter
    private let failures: Counter

    /// - Parameter factory: Makes the metrics; `nil` for the one of the process.
    package init(_ factory: (any MetricsFactory)? = nil) {
        let factory = factory ?? MetricsSystem.factory
        time = Timer(label: "tidemark_bucket_request_seconds", factory: factory)
        retries = Counter(label: "tidemark_bucket_retries_total", factory: factory)
        failures = Counter(label: "tidemark_bucket_failures_total", factory: factory)
    }

    /// The metrics' names, kinds and help texts, for a factory that has to know them before the metrics are made. A metric is a
    /// timer, in seconds, or a counter.
    package static let families: [(label: String, isTimer: Bool, help: String)] = [
        ("tidemark_bucket_request_seconds", true, "How long the bucket took to answer a request, each try by itself."),
        ("tidemark_bucket_retries_total", false, "Requests to the bucket that were sent again."),
        ("tidemark_bucket_failures_total", false, "Requests to the bucket that were given up."),
    ]

    func tried(for duration: Duration) { time.recordNanoseconds(Int64(duration / .nanoseconds(1))) }
    func retried() { retries.increment() }
    func failed() { failures.increment() }
}
