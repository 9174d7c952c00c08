import Foundation
import TestServers
import TestSupport
import Testing
import TidemarkCloud
import TidemarkPostgres

@testable import TidemarkCloudEngine

@Suite("Metrics of the pool", .enabled(if: PostgresServer.isInstalled, "\(PostgresServer.whyNot)"), .timeLimit(.minutes(30)))
struct MetricsTests {
    @Test("Connections, waits and their time, and transactions that run again are counted")
    func counts() async throws {
        let fixture = try await Fixture()
        try await fixture.makeTable()
        let factory = RecordingFactory(prefix: "tidemark_database_")
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

    @Test("How long writes wait for the locks of their owners is measured, and those that wait for too long are counted")
    func measuresLocks() async throws {
        let records = try await RecordsFixture()
        let factory = RecordingFactory(prefix: "tidemark_database_")
        let database = try Fixture.database(
            records.fixture.server.address(records.fixture.name), metrics: PostgresMetrics(factory)
        ) {
            $0.lockTimeout = .seconds(3)
            $0.attempts = 1
        }
        let (here, there) = (try await records.storage(on: database), try await records.storage())
        /// Writes for an owner while another server holds the owner's lock, for so many seconds; `nil` for as long as the write waits.
        func write(_ owner: String, beside other: String, for time: Double?) async throws {
            let (held, done) = (Signal(), Signal())
            let holder = Task {
                try await there.write(owners: [other]) { rows throws(CloudError) in
                    try rows.addUsed(1, by: other)
                    held.send()
                    done.block()
                }
            }
            await held.wait()
            // A thread of its own: a task may get no turn for longer than that beside other tests.
            if let time {
                Thread.detachNewThread {
                    Thread.sleep(forTimeInterval: time)
                    done.send()
                }
            }
            let failure: CloudError?
            do throws(CloudError) {
                try await here.write(owners: [owner]) { rows throws(CloudError) in try rows.addUsed(1, by: owner) }
                failure = nil
            } catch {
                failure = error
            }
            if time == nil { done.send() }
            try await holder.value
            if let failure { throw failure }
        }
        for owner in ["_anna", "_ben"] {
            try await there.write(owners: [owner]) { rows throws(CloudError) in try rows.addUsed(1, by: owner) }
        }
        try await write("_anna", beside: "_ben", for: 0.3)
        let alone = factory.value("lock_wait_seconds")
        #expect(alone > 0 && alone < 2_000_000_000, "\(alone)")
        try await write("_anna", beside: "_anna", for: 0.2)
        let waited = factory.value("lock_wait_seconds") - alone
        #expect(waited >= 100_000_000 && waited < 3_000_000_000, "\(waited)")
        #expect(factory.value("lock_timeouts_total") == 0)
        let error = await #expect(throws: CloudError.self) {
            try await write("_anna", beside: "_anna", for: nil)
        }
        #expect(error?.code == .zoneBusy)
        #expect(factory.value("lock_timeouts_total") == 1)
        #expect(factory.value("lock_wait_seconds") - alone - waited >= 3_000_000_000)
        await database.close()
    }
}
