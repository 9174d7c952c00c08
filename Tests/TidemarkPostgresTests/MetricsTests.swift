import Foundation
import Metrics
import TestServers
import TestSupport
import Testing
import TidemarkPostgres

/// Keeps the last value of each metric, or the sum of a counter.
private final class RecordingFactory: MetricsFactory {
    private final class Handler: CounterHandler, MeterHandler, TimerHandler {
        private let label: String
        private let values: Shared<[String: Int64]>

        init(_ label: String, _ values: Shared<[String: Int64]>) { (self.label, self.values) = (label, values) }

        private func change(_ change: @escaping @Sendable (inout Int64) -> Void) {
            let label = label
            values.change { change(&$0[label, default: 0]) }
        }

        func increment(by amount: Int64) { change { $0 += amount } }
        func reset() {}
        func set(_ value: Int64) { change { $0 = value } }
        func set(_ value: Double) { change { $0 = Int64(value) } }
        func increment(by amount: Double) { change { $0 += Int64(amount) } }
        func decrement(by amount: Double) { change { $0 -= Int64(amount) } }
        func recordNanoseconds(_ duration: Int64) { change { $0 += duration } }
    }

    let values = Shared<[String: Int64]>([:])

    func value(_ name: String) -> Int64 { values.value["tidemark_database_\(name)"] ?? 0 }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler { Handler(label, values) }
    func makeMeter(label: String, dimensions: [(String, String)]) -> any MeterHandler { Handler(label, values) }
    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler { Handler(label, values) }
    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        NOOPMetricsHandler.instance
    }
    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyMeter(_ handler: any MeterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}
}

@Suite("Metrics of the pool", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct MetricsTests {
    @Test("Connections, waits and their time, and transactions that run again are counted")
    func counts() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        let factory = RecordingFactory()
        let database = try Fixture.database(
            fixture.server.address(fixture.name), metrics: PostgresMetrics(factory)
        ) {
            $0.connections = 1
            $0.waitLimit = .milliseconds(300)
        }
        let (held, done) = (Signal(), Signal())
        let holder = Task {
            try await database.transaction { transaction in
                try transaction.query("SELECT 1")
                held.send()
                done.block()
            }
        }
        await held.wait()
        #expect(await failure { try await database.query("SELECT 1") }?.code == .poolExhausted)
        #expect(factory.value("connections_in_use") == 1)
        done.send()
        try await holder.value
        let isFirst = Shared(true)
        try await database.transaction { transaction in
            guard isFirst.value else { return }
            isFirst.change { $0 = false }
            try transaction.query("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
        }
        #expect(!isFirst.value)
        #expect(factory.value("connections_idle") == 1 && factory.value("connections_in_use") == 0)
        #expect(factory.value("connections_opened_total") == 1 && factory.value("connections_failed_total") == 0)
        #expect(factory.value("waits_total") == 1 && factory.value("wait_timeouts_total") == 1)
        #expect(factory.value("wait_seconds") >= 250_000_000)
        #expect(factory.value("transactions_rerun_total") == 1)
        await database.close()
        await fixture.database.close()
    }
}
