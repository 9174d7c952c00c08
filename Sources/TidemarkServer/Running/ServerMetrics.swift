import Synchronization

/// Figures of a server, for Prometheus.
final class ServerMetrics: Sendable {
    private struct Figures {
        /// By status.
        var requests: [Int: Int] = [:]
        /// Requests that took no longer than each of the bounds, and longer than the one before.
        var durations = [Int](repeating: 0, count: ServerMetrics.bounds.count + 1)
        var seconds = 0.0
    }

    private static let bounds = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60]

    /// By operation; what comes last stands for what is none.
    private let figures = Mutex<[(name: String, figures: Figures)]>([("none", Figures())])
    private let inFlight = Atomic<Int>(0)
    private let bytesReceived = Atomic<Int>(0)
    private let bytesSent = Atomic<Int>(0)
    private let connections = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let givenUp = Atomic<Int>(0)
    private let connectionsGaveWay = Atomic<Int>(0)
    private let connectionsTurnedAway = Atomic<Int>(0)
    private let throttledRequests = Atomic<Int>(0)
    private let refusedSignIns = Atomic<Int>(0)
    private let sessions = Atomic<Int>(0)
    private let waiting = Atomic<Int>(0)
    private let counts = Mutex<[Count: Int]>([:])
    /// By the protocol's code.
    private let refusals = Mutex<[String: Int]>([:])

    /// What is counted and doesn't happen with each request.
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

    /// Names the operations, in their order.
    func name(_ operations: [String]) {
        figures.withLock { $0 = (operations + ["none"]).map { ($0, Figures()) } }
    }

    func began() { inFlight.add(1, ordering: .relaxed) }

    /// - Parameter operation: Its place among the names; `nil` for what is none.
    func ended(_ operation: Int?, status: Int, seconds: Double) {
        inFlight.subtract(1, ordering: .relaxed)
        let bound = Self.bounds.firstIndex { seconds <= $0 } ?? Self.bounds.count
        figures.withLock { figures in
            let at = operation ?? figures.count - 1
            figures[at].figures.requests[status, default: 0] += 1
            figures[at].figures.durations[bound] += 1
            figures[at].figures.seconds += seconds
        }
    }

    func received(_ bytes: Int) { bytesReceived.add(bytes, ordering: .relaxed) }
    func sent(_ bytes: Int) { bytesSent.add(bytes, ordering: .relaxed) }

    func opened() {
        connections.add(1, ordering: .relaxed)
        accepted.add(1, ordering: .relaxed)
    }

    func closed() { connections.subtract(1, ordering: .relaxed) }
    /// A connection kept the server waiting for too long.
    func gaveUp() { givenUp.add(1, ordering: .relaxed) }
    /// A connection that rested was closed to make room for others.
    func gaveWay() { connectionsGaveWay.add(1, ordering: .relaxed) }
    /// A connection was closed since its address has as many as it may.
    func turnedAway() { connectionsTurnedAway.add(1, ordering: .relaxed) }
    func throttled() { throttledRequests.add(1, ordering: .relaxed) }
    func signInRefused() { refusedSignIns.add(1, ordering: .relaxed) }
    func signedIn() { sessions.add(1, ordering: .relaxed) }
    func count(_ count: Count, _ more: Int = 1) { counts.withLock { $0[count, default: 0] += more } }
    /// - Parameter code: Of the protocol: there are few.
    func refused(_ code: String) { refusals.withLock { $0[code, default: 0] += 1 } }
    /// So many more requests wait for notifications.
    func waits(_ more: Int) { waiting.add(more, ordering: .relaxed) }

    var requestsInFlight: Int { inFlight.load(ordering: .relaxed) }
    var openConnections: Int { connections.load(ordering: .relaxed) }

    /// All of it, in the text format of Prometheus.
    ///
    /// - Parameter bodies: Bytes of bodies that are held now.
    func text(bodies: Int) -> String {
        var text = ""
        func figure(_ name: String, _ kind: String, _ help: String, _ value: Int) {
            text += "# HELP tidemark_\(name) \(help)\n# TYPE tidemark_\(name) \(kind)\ntidemark_\(name) \(value)\n"
        }
        let figures = figures.withLock { $0 }
        text += "# HELP tidemark_requests_total Requests that were answered.\n# TYPE tidemark_requests_total counter\n"
        for (name, figures) in figures {
            for (status, count) in figures.requests.sorted(by: { $0.key < $1.key }) {
                text += "tidemark_requests_total{operation=\"\(name)\",status=\"\(status)\"} \(count)\n"
            }
        }
        text += "# HELP tidemark_request_duration_seconds From a request's head to its answer's end.\n"
        text += "# TYPE tidemark_request_duration_seconds histogram\n"
        for (name, figures) in figures where !figures.requests.isEmpty {
            var count = 0
            for (bound, more) in zip(Self.bounds.map { "\($0)" } + ["+Inf"], figures.durations) {
                count += more
                text += "tidemark_request_duration_seconds_bucket{operation=\"\(name)\",le=\"\(bound)\"} \(count)\n"
            }
            text += "tidemark_request_duration_seconds_sum{operation=\"\(name)\"} \(figures.seconds)\n"
            text += "tidemark_request_duration_seconds_count{operation=\"\(name)\"} \(count)\n"
        }
        text += "# HELP tidemark_refusals_total Requests that were refused as a whole, by their serverErrorCode.\n"
        text += "# TYPE tidemark_refusals_total counter\n"
        for (code, count) in refusals.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            text += "tidemark_refusals_total{code=\"\(code)\"} \(count)\n"
        }
        let counts = counts.withLock { $0 }
        for count in Count.allCases { figure(count.rawValue, "counter", count.help, counts[count] ?? 0) }
        figure("waits", "gauge", "Requests that wait for notifications.", waiting.load(ordering: .relaxed))
        figure("requests_in_flight", "gauge", "Requests that are being answered.", requestsInFlight)
        figure("connections", "gauge", "Connections that are open.", openConnections)
        figure("connections_total", "counter", "Connections that were accepted.", accepted.load(ordering: .relaxed))
        figure(
            "connections_given_up_total", "counter", "Connections that were closed because the client was too slow.",
            givenUp.load(ordering: .relaxed))
        figure(
            "connections_turned_away_total", "counter", "Connections that were closed because their address had too many.",
            connectionsTurnedAway.load(ordering: .relaxed))
        figure(
            "connections_gave_way_total", "counter", "Connections that rested and were closed to make room for others.",
            connectionsGaveWay.load(ordering: .relaxed))
        figure("received_bytes_total", "counter", "Bytes that came, without TLS.", bytesReceived.load(ordering: .relaxed))
        figure("sent_bytes_total", "counter", "Bytes that were sent, without TLS.", bytesSent.load(ordering: .relaxed))
        figure("bodies_bytes", "gauge", "Bytes of requests' bodies that are held.", bodies)
        figure(
            "throttled_total", "counter", "Requests that were refused because too many came.",
            throttledRequests.load(ordering: .relaxed))
        figure("sign_ins_total", "counter", "Sessions that were begun.", sessions.load(ordering: .relaxed))
        figure("sign_ins_refused_total", "counter", "Attempts to sign in that failed.", refusedSignIns.load(ordering: .relaxed))
        return text
    }
}
