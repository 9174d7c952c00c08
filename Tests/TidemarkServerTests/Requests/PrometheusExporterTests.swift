import Metrics
import Testing

@testable import TidemarkServer

/// Goal: the text of a server's figures is valid, and the factory of metrics counts each value.
@Suite(.timeLimit(.minutes(30))) struct PrometheusExporterTests {
    @Test func `a server's figures have one text`() {
        let metrics = ServerMetrics()
        metrics.name(["records.query", "assets.download"])
        for _ in 0..<5 { metrics.began() }
        metrics.ended(1, status: 206, seconds: 0.25)
        metrics.ended(0, status: 500, seconds: 70)
        metrics.ended(0, status: 200, seconds: 0.000_5)
        metrics.ended(nil, status: 404, seconds: 0.125)
        for bytes in [10, 5] { metrics.received(bytes) }
        metrics.sent(7)
        for _ in 0..<2 { metrics.opened() }
        metrics.closed()
        metrics.gaveUp()
        metrics.gaveWay()
        metrics.turnedAway()
        metrics.throttled()
        metrics.signInRefused()
        metrics.signedIn()
        metrics.count(.notifications)
        metrics.count(.assetsRemoved, 3)
        for code in ["NOT_FOUND", "BAD_REQUEST", "NOT_FOUND"] { metrics.refused(code) }
        for more in [2, -1] { metrics.waits(more) }
        #expect(metrics.text(bodies: 99) == Self.text)
        #expect(metrics.requestsInFlight == 1 && metrics.openConnections == 1)
    }

    @Test func `two servers of a process have figures of their own`() {
        let (first, second) = (ServerMetrics(), ServerMetrics())
        first.opened()
        #expect(first.openConnections == 1 && second.openConnections == 0)
    }

    @Test func `metrics of one label and equal dimensions share a value, until they are destroyed`() {
        let exporter = PrometheusExporter([.init("answers_total", .counter, "Answers."), .init("level", .gauge, "Level.")])
        func counter(_ kind: String) -> Counter {
            Counter(label: "answers_total", dimensions: [("kind", kind)], factory: exporter)
        }
        counter("b").increment()
        counter("b").increment(by: 2)
        counter("a\\\"\n").increment()
        let gauge = Gauge(label: "level", factory: exporter)
        gauge.record(2.5)
        let head = "# HELP answers_total Answers.\n# TYPE answers_total counter\n"
        let level = "# HELP level Level.\n# TYPE level gauge\nlevel 2.5\n"
        let escaped = #"answers_total{kind="a\\\"\n"} 1"#
        #expect(exporter.text() == "\(head)\(escaped)\nanswers_total{kind=\"b\"} 3\n\(level)")
        exporter.order("kind", ["b"])
        #expect(exporter.text() == "\(head)answers_total{kind=\"b\"} 3\n\(escaped)\n\(level)")
        counter("b").reset()
        #expect(exporter.text() == "\(head)answers_total{kind=\"b\"} 0\n\(escaped)\n\(level)")
        counter("b").destroy()
        gauge.destroy()
        #expect(exporter.text() == "\(head)\(escaped)\n# HELP level Level.\n# TYPE level gauge\n")
    }

    @Test func `values that are added at the same time are all counted`() async {
        let exporter = PrometheusExporter([
            .init("sum", .counter, ""), .init("level", .gauge, ""), .init("time", .histogram(bounds: [1]), ""),
        ])
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    let (sum, level) = (Counter(label: "sum", factory: exporter), Meter(label: "level", factory: exporter))
                    let time = Timer(label: "time", factory: exporter)
                    for _ in 0..<1_000 {
                        sum.increment()
                        level.increment(by: 2.0)
                        level.decrement()
                        time.recordSeconds(2)
                    }
                }
            }
        }
        for line in ["sum 4000", "level 4000", "time_bucket{le=\"1.0\"} 0", "time_bucket{le=\"+Inf\"} 4000", "time_sum 8000.0"] {
            #expect(exporter.text().contains("\n\(line)\n"))
        }
    }

    private static let text = """
        # HELP tidemark_requests_total Requests that were answered.
        # TYPE tidemark_requests_total counter
        tidemark_requests_total{operation="records.query",status="200"} 1
        tidemark_requests_total{operation="records.query",status="500"} 1
        tidemark_requests_total{operation="assets.download",status="206"} 1
        tidemark_requests_total{operation="none",status="404"} 1
        # HELP tidemark_request_duration_seconds From a request's head to its answer's end.
        # TYPE tidemark_request_duration_seconds histogram
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.0005"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.001"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.0025"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.005"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.01"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.025"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.05"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.1"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.25"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="0.5"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="1.0"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="2.5"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="10.0"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="60.0"} 1
        tidemark_request_duration_seconds_bucket{operation="records.query",le="+Inf"} 2
        tidemark_request_duration_seconds_sum{operation="records.query"} 70.0005
        tidemark_request_duration_seconds_count{operation="records.query"} 2
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.0005"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.001"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.0025"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.005"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.01"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.025"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.05"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.1"} 0
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.25"} 1
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="0.5"} 1
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="1.0"} 1
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="2.5"} 1
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="10.0"} 1
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="60.0"} 1
        tidemark_request_duration_seconds_bucket{operation="assets.download",le="+Inf"} 1
        tidemark_request_duration_seconds_sum{operation="assets.download"} 0.25
        tidemark_request_duration_seconds_count{operation="assets.download"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="0.0005"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.001"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.0025"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.005"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.01"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.025"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.05"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.1"} 0
        tidemark_request_duration_seconds_bucket{operation="none",le="0.25"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="0.5"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="1.0"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="2.5"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="10.0"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="60.0"} 1
        tidemark_request_duration_seconds_bucket{operation="none",le="+Inf"} 1
        tidemark_request_duration_seconds_sum{operation="none"} 0.125
        tidemark_request_duration_seconds_count{operation="none"} 1
        # HELP tidemark_refusals_total Requests that were refused as a whole, by their serverErrorCode.
        # TYPE tidemark_refusals_total counter
        tidemark_refusals_total{code="BAD_REQUEST"} 1
        tidemark_refusals_total{code="NOT_FOUND"} 2
        # HELP tidemark_notifications_total Notifications that were made for a device.
        # TYPE tidemark_notifications_total counter
        tidemark_notifications_total 1
        # HELP tidemark_notifications_dropped_total Notifications that nobody fetched and there was no room for.
        # TYPE tidemark_notifications_dropped_total counter
        tidemark_notifications_dropped_total 0
        # HELP tidemark_change_summaries_dropped_total Requests whose changes reached no subscriber, because too many came.
        # TYPE tidemark_change_summaries_dropped_total counter
        tidemark_change_summaries_dropped_total 0
        # HELP tidemark_leftover_assets_removed_total Contents of assets that no record named, and that were removed.
        # TYPE tidemark_leftover_assets_removed_total counter
        tidemark_leftover_assets_removed_total 3
        # HELP tidemark_sweeps_failed_total Times that what nobody needs could not be removed.
        # TYPE tidemark_sweeps_failed_total counter
        tidemark_sweeps_failed_total 0
        # HELP tidemark_waits Requests that wait for notifications.
        # TYPE tidemark_waits gauge
        tidemark_waits 1
        # HELP tidemark_requests_in_flight Requests that are being answered.
        # TYPE tidemark_requests_in_flight gauge
        tidemark_requests_in_flight 1
        # HELP tidemark_connections Connections that are open.
        # TYPE tidemark_connections gauge
        tidemark_connections 1
        # HELP tidemark_connections_total Connections that were accepted.
        # TYPE tidemark_connections_total counter
        tidemark_connections_total 2
        # HELP tidemark_connections_given_up_total Connections that were closed because the client was too slow.
        # TYPE tidemark_connections_given_up_total counter
        tidemark_connections_given_up_total 1
        # HELP tidemark_connections_turned_away_total Connections that were closed because their address had too many.
        # TYPE tidemark_connections_turned_away_total counter
        tidemark_connections_turned_away_total 1
        # HELP tidemark_connections_gave_way_total Connections that rested and were closed to make room for others.
        # TYPE tidemark_connections_gave_way_total counter
        tidemark_connections_gave_way_total 1
        # HELP tidemark_received_bytes_total Bytes that came, without TLS.
        # TYPE tidemark_received_bytes_total counter
        tidemark_received_bytes_total 15
        # HELP tidemark_sent_bytes_total Bytes that were sent, without TLS.
        # TYPE tidemark_sent_bytes_total counter
        tidemark_sent_bytes_total 7
        # HELP tidemark_bodies_bytes Bytes of requests' bodies that are held.
        # TYPE tidemark_bodies_bytes gauge
        tidemark_bodies_bytes 99
        # HELP tidemark_throttled_total Requests that were refused because too many came.
        # TYPE tidemark_throttled_total counter
        tidemark_throttled_total 1
        # HELP tidemark_sign_ins_total Sessions that were begun.
        # TYPE tidemark_sign_ins_total counter
        tidemark_sign_ins_total 1
        # HELP tidemark_sign_ins_refused_total Attempts to sign in that failed.
        # TYPE tidemark_sign_ins_refused_total counter
        tidemark_sign_ins_refused_total 1

        """
}
