import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkSync

/// Goal: both stores together wait only once for a cloud that does not answer, and failures that may pass are marked so. Method:
/// a cloud that is away, and a clock that only waiting moves.
@Suite(.timeLimit(.minutes(30))) struct TimeoutTests {
    @Test func `both stores together wait no longer than the patience`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let container = try ContainerDirectory(openingOrCreatingAt: scratch["a.tidemark"])
        var account = cloud.account
        account.status = .temporarilyUnavailable
        try await cloud.cloud.update(account)
        let clock = Waits()
        let environment = clock.environment
        let databases = try cloud.cloud.databases(of: TestCloud.container, account: cloud.account.id)
        let sync = try ContainerSync(container: container, databases: databases, environment: environment)
        let report = try await sync.sync(patience: .seconds(10))
        let failure = try #require(report.failure)
        #expect(failure.code == SyncErrorCode.noAccount)
        #expect(failure.isPassing)
        #expect(clock.waited > 0 && clock.waited <= 10_000_000)
        // Each wait is three quarters of a doubling step: those of the first store, and none of the second.
        #expect(clock.waited == 750_000 + 1_500_000 + 3_000_000)
    }

    @Test func `the time of successful requests does not count against the patience`() async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let clock = Waits()
        let recording = RecordingDatabase(try cloud.database())
        let device = try Device(scratch["a.tidemark"], database: recording, environment: clock.environment)
        try await device.set("senja", ["rating": .int64(5)])
        recording.afterRequest(1) {
            // A long upload succeeds; then the cloud goes away.
            clock.move(.seconds(60))
            do { try await device.set("lofoten", ["rating": .int64(4)]) } catch { Issue.record(error) }
            recording.fails(with: .networkUnavailable)
        }
        let report = try await device.engine.sync(patience: .seconds(10))
        #expect(report.failure?.isPassing == true)
        #expect(recording.sent == ["senja"])
        #expect(clock.waited == 60_000_000 + 750_000 + 1_500_000 + 3_000_000)
        #expect(await device.engine.patienceLeft == .microseconds(10_000_000 - 5_250_000))
    }

    @Test func `only a cloud that is away without a requested wait is tried when it may be back`() async throws {
        let scratch = try Scratch()
        let recording = RecordingDatabase(try await TestCloud(scratch).database())
        let device = try Device(scratch["a.tidemark"], database: recording, environment: Waits().environment)
        for (error, isUnreached) in [
            (CloudError(.networkUnavailable, "away"), true), (CloudError(.serviceUnavailable, "too much to do"), false),
            (CloudError(.networkFailure, "broken"), true), (CloudError(.internalError, "an error"), false),
            (CloudError(.networkUnavailable, "away", retryAfter: .seconds(60)), false),
        ] {
            recording.accountFails(with: error)
            _ = try await device.engine.sync(patience: .zero)
            #expect(await device.engine.isUnreached == isUnreached, "\(error)")
        }
        // A step that succeeds reaches the cloud.
        recording.accountFails(with: CloudError(.networkUnavailable, "away"))
        _ = try await device.engine.sync(patience: .zero)
        recording.accountFails(with: nil)
        #expect(try await device.engine.sync(patience: .zero).failure == nil)
        #expect(await !device.engine.isUnreached)
    }

    @Test func `a success beside a failure does not hide that the cloud was away`() async throws {
        let scratch = try Scratch()
        let recording = RecordingDatabase(try await TestCloud(scratch).database())
        let device = try Device(scratch["a.tidemark"], database: recording, environment: Waits().environment)
        #expect(try await device.engine.sync(patience: .zero).failure == nil)
        recording.changesFail(with: CloudError(.networkUnavailable, "away"))
        try await device.set("senja", ["rating": .int64(5)])
        _ = try await device.engine.sync(patience: .zero)
        #expect(await device.engine.isUnreached)
    }

    /// A clock that only waiting moves.
    private final class Waits: Sendable {
        private static let start: Int64 = 1_763_712_000_000_000
        private let time = LockedValue(Waits.start)
        var now: Int64 { time.withLock { $0 } }
        /// The time that was waited, in microseconds.
        var waited: Int64 { now - Self.start }
        /// An environment without concurrency.
        var environment: SyncEnvironment {
            SyncEnvironment(
                now: { self.now }, sleep: { self.move($0) }, random: { 0.5 }, identifier: { UUID() }, looksAhead: false)
        }
        func move(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            time.withLock { $0 += seconds * 1_000_000 + attoseconds / 1_000_000_000_000 }
        }
    }
}
