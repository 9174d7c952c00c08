import Foundation
import TestSupport
import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkEmbeddedCloud
import TidemarkModel
import TidemarkStore
import TidemarkTesting

@testable import TidemarkSync

/// Goal: a clock that is wrong by years, goes back, or shows the end of its range does not win permanently, does not cause waits
/// of years, and does not crash. Method: a device with such a clock beside two with correct clocks, under policies that compare
/// times and that do not; the waits of a synchronisation whose clock is set back.
@Suite(.timeLimit(.minutes(30))) struct WrongClockTests {
    /// Three devices of one account, the first of which has a wrong clock.
    private struct Devices {
        let scratch: Scratch
        let cloud: EmbeddedCloud
        let time: TestClock
        let clock: DeviceClock
        let all: [Device]

        init(_ wrong: WrongClock, _ policy: MergePolicy) async throws {
            let (scratch, time) = (try Scratch(), TestClock(movesWhenWaiting: true))
            let clock = DeviceClock(wrong, beside: { time.now })
            let cloud = try EmbeddedCloud(inMemoryBeside: scratch["cloud"], now: { time.now })
            let account = try await cloud.addAccount("anna@example.org")
            var configuration = SyncConfiguration()
            configuration.mergePolicy = { _ in policy }
            var all: [Device] = []
            for number in 0..<3 {
                var environment = time.environment
                if number == 0 { environment.now = { clock.now } }
                all.append(
                    try Device(
                        scratch["\(number).tidemark"],
                        database: cloud.database(.private, of: TestCloud.container, account: account.id),
                        configuration: configuration, environment: environment))
            }
            (self.scratch, self.cloud, self.time, self.clock, self.all) = (scratch, cloud, time, clock, all)
        }

        var wrong: Device { all[0] }
        var right: Device { all[1] }

        /// Synchronises all devices twice, so that everything that each has sent is everywhere.
        func sync(_ what: Comment) async throws {
            for device in all + all {
                let report = try await device.engine.sync(patience: .seconds(60))
                #expect(report.isComplete && report.deferred == 0, what)
            }
            for device in all { #expect(try device.records() == all[2].records(), what) }
        }

        /// The captions of the record on all devices.
        func caption() throws -> FieldValue? { try all[2].records()["senja"]?["caption"] }
    }

    @Test(arguments: WrongClock.allCases, ["latestEdit", "mergeByPropertyObjectTrump", "mergeByPropertyStoreTrump"])
    func `the later edit of a device with a correct clock wins, whatever the other clock shows`(
        wrong: WrongClock, policy: String
    ) async throws {
        let devices = try await Devices(wrong, try #require(MergePolicy(name: policy)))
        func later(_ caption: String, by device: Device) async throws {
            devices.time.advance(by: .seconds(1))
            try await device.set("senja", ["caption": .string(caption)])
            try await devices.sync("\(caption)")
            #expect(try devices.caption() == .string(caption))
        }
        try await devices.wrong.set("senja", ["caption": .string("made"), "rating": .int64(1)])
        try await devices.sync("made")
        try await later("by the right one", by: devices.right)
        try await later("by the wrong one", by: devices.wrong)
        try await later("by a third one", by: devices.all[2])
        // Fields that no other device has edited are kept from both.
        try await devices.wrong.set("senja", ["rating": .int64(2)])
        try await devices.right.set("senja", ["caption": .string("of one field")])
        try await devices.sync("of two fields")
        #expect(try devices.right.records()["senja"] == ["caption": .string("of one field"), "rating": .int64(2)])
        // One of two simultaneous edits wins, which one is open.
        for round in 0..<2 {
            try await devices.wrong.set("senja", ["caption": .string("wrong, at once \(round)")])
            try await devices.right.set("senja", ["caption": .string("right, at once \(round)")])
            try await devices.sync("at once")
            try await later("after \(round)", by: devices.right)
        }
        devices.clock.putRight()
        try await devices.wrong.set("senja", ["caption": .string("the clock is right")])
        try await devices.sync("put right")
        #expect(try devices.caption() == .string("the clock is right"))
        try await later("last", by: devices.right)
        try await devices.right.delete("senja")
        try await devices.sync("deleted")
        #expect(try devices.right.records().isEmpty)
        try await later("made again", by: devices.wrong)
        // The times of history and events can be printed.
        for device in devices.all {
            for event in try device.reader().events() { #expect(!Timestamp.text(microseconds: event.event.start).isEmpty) }
            #expect(try StoreVerification(of: device.container).run().problems.isEmpty)
        }
    }

    @Test(arguments: [CloudError.Code.referenceViolation, .secondFactorRequired, .quotaExceeded])
    func `a record refused while the clock was ahead is sent when the clock is right`(code: CloudError.Code) async throws {
        let scratch = try Scratch()
        let cloud = try await TestCloud(scratch)
        let recording = RecordingDatabase(try cloud.database())
        let time = TestClock(movesWhenWaiting: true)
        let clock = DeviceClock(.tenYearsAhead, beside: { time.now })
        var environment = time.environment
        environment.now = { clock.now }
        let device = try Device(scratch["a.tidemark"], database: recording, environment: environment)
        try await device.set("senja", ["caption": .string("Senja")])
        recording.refuses("senja", with: code)
        #expect(try await device.engine.sync(patience: .zero).outbox.pending == 1)
        let issue = try #require(try device.reader().syncIssues(record: "senja").first)
        #expect(issue.nextTry ?? 0 > time.now + WrongClock.tenYears)
        clock.putRight()
        recording.stopsRefusing()
        #expect(try await device.engine.sync(patience: .zero).isComplete)
        #expect(recording.sent == ["senja"])
    }

    @Test func `a pause that began while the clock was ahead ends when the clock is corrected`() {
        let (right, wrong) = (1_763_712_000_000_000 as Int64, 1_763_712_000_000_000 + WrongClock.tenYears)
        var machine = SyncMachine()
        machine.setUpFailed(at: wrong, retryAfter: .seconds(60), random: 0.5)
        #expect(machine.next(at: wrong) == .wait(until: wrong + 60_000_000))
        #expect(machine.next(at: right) == .setUp)
        machine.setUpSucceeded()
        machine.importFailed(at: wrong, retryAfter: nil, random: 0.5)
        machine.exportFailed(at: wrong, retryAfter: nil, random: 0.5)
        #expect(machine.next(at: right) == .importPage)
        machine.imported(moreComing: false)
        #expect(machine.next(at: right) == .exportBatch)
        machine.exported(sent: 0, didWork: false, nextTry: nil, at: right, random: 0.5)
        #expect(machine.next(at: right) == .wait(until: nil))
        machine.saved(at: wrong, delay: .seconds(1))
        #expect(machine.next(at: wrong) == .wait(until: wrong + 1_000_000))
        #expect(machine.next(at: right) == .exportBatch)
    }

    @Test func `a change to be tried again waits at most a day after the clock was set back`() {
        let (right, wrong) = (1_763_712_000_000_000 as Int64, 1_763_712_000_000_000 + WrongClock.tenYears)
        var machine = SyncMachine()
        machine.setUpSucceeded()
        machine.imported(moreComing: false)
        let pause = ExportReaction.limitPause
        machine.exported(sent: 0, didWork: false, nextTry: wrong + pause, at: wrong, random: 0.5)
        #expect(machine.next(at: wrong) == .wait(until: wrong + pause))
        #expect(machine.next(at: right) == .exportBatch)
        machine.exported(sent: 0, didWork: false, nextTry: right + pause, at: right, random: 0.5)
        #expect(machine.next(at: right) == .wait(until: right + pause))
        #expect(machine.next(at: right + pause) == .exportBatch)
    }

    @Test func `waits, edit times and texts of times do not overflow`() {
        for now in [Timestamp.range.lowerBound, 0, Timestamp.range.upperBound] {
            for asked in [nil, Duration.zero, .seconds(-1), .seconds(Int64.max), .seconds(Int64.min)] {
                var backoff = SyncMachine.backoff
                for _ in 0..<100 { backoff.fail(at: now, asked: asked, random: 0.99) }
                #expect((now...now + 86_400_000_000).contains(backoff.notBefore))
                backoff.hasten(at: now)
                #expect(backoff.allows(now + 86_400_000_000))
            }
        }
        let ends: [Int64] = [.min, .min + 1, -1, 0, 9_223_372_036_854_775, .max - 1, .max]
        for end in ends {
            let time = EditTime(microseconds: end, device: "a")
            for now in ends { #expect(time.clamped(to: now) <= time) }
            #expect(EditTimes(EditTimes(otherwise: time).description).otherwise == time)
            #expect(Timestamp.text(microseconds: end).hasSuffix("Z"))
            #expect(Timestamp.range.contains(Timestamp.bounded { end }()))
        }
    }
}
