import Synchronization
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkStore
import TidemarkSync

/// Goal: a cloud that does not answer is waited for once, not for each store, and what it says may pass by itself. Method: a cloud that is
/// away, and a clock that only waiting moves.
@Suite struct PatienceTests {
    @Test func `both stores together wait no longer than they may`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let container = try ContainerDirectory(openingOrCreatingAt: scratch["a.tidemark"])
        var account = cloud.account
        account.status = .temporarilyUnavailable
        try await cloud.cloud.update(account)
        let clock = Waits()
        var environment = SyncEnvironment.system
        environment.now = { clock.now }
        environment.sleep = { clock.move($0) }
        environment.random = { 0.5 }
        let databases = try cloud.cloud.databases(of: TestCloud.container, account: cloud.account.id)
        let sync = try ContainerSync(container: container, databases: databases, environment: environment)
        let report = try await sync.sync(patience: .seconds(10))
        let failure = try #require(report.failure)
        #expect(failure.code == SyncErrorCode.noAccount)
        #expect(failure.isPassing)
        #expect(clock.now > 0 && clock.now <= 10_000_000)
        // Each step is three quarters of one that doubles: those of the first store, and none of the second.
        #expect(clock.now == 750_000 + 1_500_000 + 3_000_000)
    }

    /// Moved by whoever waits.
    private final class Waits: Sendable {
        private let time = Mutex<Int64>(0)
        var now: Int64 { time.withLock { $0 } }
        func move(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            time.withLock { $0 += seconds * 1_000_000 + attoseconds / 1_000_000_000_000 }
        }
    }
}
