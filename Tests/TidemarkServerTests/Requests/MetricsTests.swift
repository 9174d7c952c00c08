import Foundation
import NIOHTTP1
import TestSupport
import Testing
import TidemarkCloud

@testable import TidemarkServer

/// Goal: the figures count what a server refused, dropped and has waiting.
@Suite(.timeLimit(.minutes(30))) struct MetricsTests {
    private func has(_ metrics: ServerMetrics, _ line: String) -> Bool { metrics.text(bodies: 0).contains("\n\(line)\n") }

    @Test func `refusals are counted by their code`() async throws {
        try await StubbedServer.with { server in
            for _ in 0..<2 { _ = try await server.send(.POST, server.path("records/query")) }
            _ = try await server.send(.POST, "/nowhere")
            _ = try await server.send(.POST, server.path("records/query", query: server.api))
            let metrics = server.server.metrics
            #expect(has(metrics, "tidemark_refusals_total{code=\"AUTHENTICATION_FAILED\"} 2"))
            #expect(has(metrics, "tidemark_refusals_total{code=\"NOT_FOUND\"} 1"))
        }
    }

    @Test func `notifications without room are counted`() async {
        let metrics = ServerMetrics()
        var limits = NotificationMailbox.Limits()
        limits.framesOfBox = 2
        let (mailbox, box) = (
            NotificationMailbox(limits: limits, metrics: metrics), NotificationMailbox.Box(account: "anna", token: "t")
        )
        for byte: UInt8 in 1...2 { await mailbox.put([byte], for: box) }
        #expect(has(metrics, "tidemark_notifications_total 2") && has(metrics, "tidemark_notifications_dropped_total 0"))
        // Each new one drops the oldest; one that is too large is dropped itself.
        for byte: UInt8 in 3...4 { await mailbox.put([byte], for: box) }
        await mailbox.put([UInt8](repeating: 5, count: 100_000), for: box)
        await mailbox.putBack([1], for: box)
        #expect(has(metrics, "tidemark_notifications_total 5") && has(metrics, "tidemark_notifications_dropped_total 4"))
        #expect(await mailbox.take(for: box) == [3])
    }

    @Test(arguments: ["Deployment/prometheus-rules.yaml", "Documentation/Guides/Cluster.md"])
    func `a server has each figure that an alert uses`(_ file: String) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        let text = try String(contentsOf: folder.appendingPathComponent(file).standardizedFileURL, encoding: .utf8)
        let told = ServerMetrics(hasDatabase: true).text(bodies: 0)
        let names = Set(text.matches(of: /\btidemark_[a-z_]+/).map { String($0.output) })
        #expect(names.count >= 10, "\(names.sorted())")
        for name in names {
            let family = name.replacing(/_(?:bucket|sum|count)$/, with: "")
            #expect(told.contains("\n# TYPE \(family) "), "\(name)")
        }
    }

    @Test func `waiting clients are counted while they wait`() throws {
        let metrics = ServerMetrics()
        let room = LongPollLimiter(metrics: metrics)
        for _ in 0..<LongPollLimiter.waitsMost { try room.enter("anna") }
        #expect(throws: CloudError(.requestRateLimited, "")) { try room.enter("anna") }
        #expect(has(metrics, "tidemark_waits \(LongPollLimiter.waitsMost)"))
        for _ in 0..<LongPollLimiter.waitsMost { room.leave("anna") }
        #expect(has(metrics, "tidemark_waits 0"))
    }
}
