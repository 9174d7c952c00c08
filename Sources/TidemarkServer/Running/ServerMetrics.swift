import Metrics
import TidemarkModel
import TidemarkPostgres
import TidemarkS3

/// The metrics of a server, for Prometheus.
final class ServerMetrics: Sendable {
    private struct Figures {
        let operation: String
        /// Made with the first request.
        var durations: Timer?
        var requests: [(status: Int, counter: Counter)] = []
    }

    private typealias Family = PrometheusExporter.Family

    private let exporter: PrometheusExporter
    /// By operation. The last entry counts requests without an operation.
    private let figures = LockedValue<[Figures]>([Figures(operation: ServerMetrics.none)])
    /// By the protocol's code.
    private let refusals = LockedValue<[String: Counter]>([:])
    private let counts: [Count: Counter]
    private let inFlight: Meter
    private let connections: Meter
    private let waiting: Meter
    private let bodies: Meter
    private let bytesReceived: Counter
    private let bytesSent: Counter
    private let accepted: Counter
    private let givenUp: Counter
    private let connectionsGaveWay: Counter
    private let connectionsTurnedAway: Counter
    private let throttledRequests: Counter
    private let refusedSignIns: Counter
    private let sessions: Counter

    /// The events that are counted and don't happen with each request.
    enum Count: String, CaseIterable {
        case notifications = "notifications_total"
        case notificationsDropped = "notifications_dropped_total"
        case changeSummariesDropped = "change_summaries_dropped_total"
        case assetsRemoved = "leftover_assets_removed_total"
        case sweepsFailed = "sweeps_failed_total"

        fileprivate var help: String {
            switch self {
            case .notifications: "Notifications that were made for a device."
            case .notificationsDropped: "Notifications that nobody fetched and there was no room for."
            case .changeSummariesDropped: "Requests whose changes reached no subscriber, because too many came."
            case .assetsRemoved: "Contents of assets that no record named, and that were removed."
            case .sweepsFailed: "Times that what nobody needs could not be removed."
            }
        }
    }

    /// - Parameter hasDatabase: Whether there are metrics of a database's connections and of a bucket.
    init(hasDatabase: Bool = false) {
        let exporter = PrometheusExporter(Self.families + (hasDatabase ? Self.databaseFamilies + Self.bucketFamilies : []))
        func counter(_ name: String) -> Counter { Counter(label: Self.label(name), factory: exporter) }
        func meter(_ name: String) -> Meter { Meter(label: Self.label(name), factory: exporter) }
        self.exporter = exporter
        counts = Dictionary(uniqueKeysWithValues: Count.allCases.map { ($0, counter($0.rawValue)) })
        (inFlight, connections) = (meter("requests_in_flight"), meter("connections"))
        (waiting, bodies) = (meter("waits"), meter("bodies_bytes"))
        (bytesReceived, bytesSent) = (counter("received_bytes_total"), counter("sent_bytes_total"))
        (accepted, givenUp) = (counter("connections_total"), counter("connections_given_up_total"))
        connectionsGaveWay = counter("connections_gave_way_total")
        connectionsTurnedAway = counter("connections_turned_away_total")
        throttledRequests = counter("throttled_total")
        (sessions, refusedSignIns) = (counter("sign_ins_total"), counter("sign_ins_refused_total"))
    }

    /// Makes the metrics of the connections to the database. Requires `hasDatabase`.
    func ofDatabase() -> PostgresMetrics { PostgresMetrics(exporter) }
    /// Makes the metrics of the requests to a bucket. Requires `hasDatabase`.
    func ofBucket() -> S3Metrics { S3Metrics(exporter) }

    /// Sets the names of the operations, in their order.
    func name(_ operations: [String]) {
        exporter.order("operation", operations + [Self.none])
        figures.withLock { $0 = (operations + [Self.none]).map { Figures(operation: $0) } }
    }

    func began() { inFlight.increment() }

    /// - Parameter operation: The index of the operation's name; `nil` for none.
    func ended(_ operation: Int?, status: Int, seconds: Double) {
        inFlight.decrement()
        let (durations, requests) = figures.withLock { figures in
            let at = operation ?? figures.count - 1
            return (timer(of: &figures[at]), counter(of: &figures[at], status))
        }
        requests.increment()
        durations.recordSeconds(seconds)
    }

    // Made once for each operation and each of its statuses, and not with each request.

    private func timer(of figures: inout Figures) -> Timer {
        if let known = figures.durations { return known }
        let timer = Timer(
            label: Self.label("request_duration_seconds"), dimensions: [("operation", figures.operation)], factory: exporter)
        figures.durations = timer
        return timer
    }

    private func counter(of figures: inout Figures, _ status: Int) -> Counter {
        if let known = figures.requests.first(where: { $0.status == status }) { return known.counter }
        let counter = Counter(
            label: Self.label("requests_total"), dimensions: [("operation", figures.operation), ("status", "\(status)")],
            factory: exporter)
        figures.requests.append((status, counter))
        return counter
    }

    func received(_ bytes: Int) { bytesReceived.increment(by: bytes) }
    func sent(_ bytes: Int) { bytesSent.increment(by: bytes) }

    func opened() {
        connections.increment()
        accepted.increment()
    }

    func closed() { connections.decrement() }
    /// Counts a connection that kept the server waiting too long.
    func gaveUp() { givenUp.increment() }
    /// Counts a resting connection that was closed to make room for others.
    func gaveWay() { connectionsGaveWay.increment() }
    /// Counts a connection that was closed because its address has as many as it may have.
    func turnedAway() { connectionsTurnedAway.increment() }
    func throttled() { throttledRequests.increment() }
    func signInRefused() { refusedSignIns.increment() }
    func signedIn() { sessions.increment() }
    func count(_ count: Count, _ more: Int = 1) { counts[count]?.increment(by: more) }

    /// - Parameter code: A code of the protocol, of which there are few.
    func refused(_ code: String) {
        let counter = refusals.withLock { refusals in
            if let known = refusals[code] { return known }
            let counter = Counter(label: Self.label("refusals_total"), dimensions: [("code", code)], factory: exporter)
            refusals[code] = counter
            return counter
        }
        counter.increment()
    }

    /// Adds to the number of requests that wait for notifications.
    func waits(_ more: Int) { waiting.increment(by: Double(more)) }

    var requestsInFlight: Int { Int(exporter.value(ofGauge: Self.label("requests_in_flight")) ?? 0) }
    var openConnections: Int { Int(exporter.value(ofGauge: Self.label("connections")) ?? 0) }

    /// Returns all metrics in the text format of Prometheus.
    ///
    /// - Parameter bodies: The bytes of bodies in memory.
    func text(bodies: Int) -> String {
        self.bodies.set(bodies)
        return exporter.text()
    }
}

extension ServerMetrics {
    /// The operation of a request that has none.
    private static let none = "none"

    private static let bounds = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]

    private static func label(_ name: String) -> String { "tidemark_\(name)" }

    private static let databaseFamilies = PostgresMetrics.families.map { family in
        let kind: Family.Kind =
            switch family.kind {
            case .counter: .counter
            case .gauge: .gauge
            case .timer: .histogram(bounds: bounds)
            }
        return Family(family.label, kind, family.help)
    }

    private static let bucketFamilies = S3Metrics.families.map { family in
        Family(family.label, family.isTimer ? .histogram(bounds: bounds) : .counter, family.help)
    }

    /// In the order of the text.
    private static let families: [Family] = {
        func counter(_ name: String, _ help: String) -> Family { Family(label(name), .counter, help) }
        func gauge(_ name: String, _ help: String) -> Family { Family(label(name), .gauge, help) }
        let requests = [
            counter("requests_total", "Requests that were answered."),
            Family(label("request_duration_seconds"), .histogram(bounds: bounds), "From a request's head to its answer's end."),
            counter("refusals_total", "Requests that were refused as a whole, by their serverErrorCode."),
        ]
        let others = [
            gauge("waits", "Requests that wait for notifications."),
            gauge("requests_in_flight", "Requests that are being answered."),
            gauge("connections", "Connections that are open."),
            counter("connections_total", "Connections that were accepted."),
            counter("connections_given_up_total", "Connections that were closed because the client was too slow."),
            counter("connections_turned_away_total", "Connections that were closed because their address had too many."),
            counter("connections_gave_way_total", "Connections that rested and were closed to make room for others."),
            counter("received_bytes_total", "Bytes that came, without TLS."),
            counter("sent_bytes_total", "Bytes that were sent, without TLS."),
            gauge("bodies_bytes", "Bytes of requests' bodies that are held."),
            counter("throttled_total", "Requests that were refused because too many came."),
            counter("sign_ins_total", "Sessions that were begun."),
            counter("sign_ins_refused_total", "Attempts to sign in that failed."),
        ]
        return requests + Count.allCases.map { counter($0.rawValue, $0.help) } + others
    }()
}
