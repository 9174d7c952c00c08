import Testing
import TidemarkCloud
import TidemarkContainers
import TidemarkModel

@testable import TidemarkSync

/// Goal: the next step follows by rules from past events and the time. Method: the machine alone, with a clock of the test's own.
@Suite(.timeLimit(.minutes(30))) struct SyncMachineTests {
    private static let second: Int64 = 1_000_000

    private func ready() -> SyncMachine {
        var machine = SyncMachine()
        machine.setUpSucceeded()
        return machine
    }

    @Test func `nothing is done before set-up, and set-up is tried again after a pause each time`() {
        var machine = SyncMachine()
        #expect(machine.next(at: 0) == .setUp)
        machine.setUpFailed(at: 0, retryAfter: nil, random: 0.5)
        #expect(machine.next(at: 0) == .wait(until: 750_000))
        #expect(machine.next(at: 750_000) == .setUp)
        machine.setUpFailed(at: Self.second, retryAfter: .seconds(30), random: 0)
        #expect(machine.next(at: 2 * Self.second) == .wait(until: 31 * Self.second))
    }

    @Test func `saves within a delay are sent together, and later saves do not extend the delay`() {
        var machine = ready()
        machine.imported(moreComing: false)
        machine.exported(sent: 0, didWork: false, nextTry: nil, at: 0, random: 0)
        machine.saved(at: Self.second, delay: .milliseconds(500))
        #expect(machine.next(at: Self.second) == .wait(until: 1_500_000))
        machine.saved(at: 1_400_000, delay: .milliseconds(500))
        #expect(machine.next(at: 1_400_000) == .wait(until: 1_500_000))
        #expect(machine.next(at: 1_500_000) == .exportBatch)
        machine.exported(sent: 2, didWork: false, nextTry: nil, at: 1_500_000, random: 0)
        machine.saved(at: 2 * Self.second, delay: .zero)
        #expect(machine.next(at: 2 * Self.second) == .exportBatch)
        // Changes that a merge has released are not delayed.
        machine.exported(sent: 1, didWork: false, nextTry: nil, at: 2 * Self.second, random: 0)
        machine.saved(at: 3 * Self.second, delay: .seconds(1))
        machine.wantExport()
        #expect(machine.next(at: 3 * Self.second) == .exportBatch)
    }

    @Test func `a change of the network brings forward only the tries that failed to reach the cloud`() {
        var machine = SyncMachine()
        for _ in 0..<8 { machine.setUpFailed(at: 0, retryAfter: nil, random: 0.5) }
        machine.networkChanged(at: Self.second)
        #expect(machine.next(at: Self.second) == .wait(until: 96 * Self.second))
        machine.failed(isUnreached: true)
        machine.networkChanged(at: Self.second)
        #expect(machine.next(at: Self.second) == .wait(until: 2 * Self.second))
        #expect(machine.next(at: 2 * Self.second) == .setUp)
    }

    @Test func `imports and exports alternate while both have something to do`() {
        var machine = ready()
        var steps: [SyncMachine.Step] = []
        for _ in 0..<4 {
            let step = machine.next(at: 0)
            steps.append(step)
            if step == .importPage {
                machine.imported(moreComing: true)
            } else {
                machine.exported(sent: 1, didWork: true, nextTry: nil, at: 0, random: 0)
            }
        }
        #expect(steps == [.importPage, .exportBatch, .importPage, .exportBatch])
    }

    @Test func `a notification that arrives after the changed zones were requested makes another round`() {
        var machine = ready()
        machine.exported(sent: 0, didWork: false, nextTry: nil, at: 0, random: 0)
        machine.wantImport()
        machine.willAskForChangedZones()
        machine.imported(moreComing: true)
        machine.cloudNotified(at: 0)
        machine.imported(moreComing: false)
        #expect(machine.next(at: 0) == .importPage)
        machine.willAskForChangedZones()
        machine.imported(moreComing: false)
        #expect(machine.next(at: 0) == .wait(until: nil))
        // The same holds for one during the request.
        machine.wantImport()
        machine.willAskForChangedZones()
        machine.wantImport()
        machine.imported(moreComing: false)
        #expect(machine.next(at: 0) == .importPage)
    }

    @Test func `imports continue while exports wait, and exports while imports wait`() {
        var machine = ready()
        machine.exportFailed(at: 0, retryAfter: .seconds(600), random: 0)
        for _ in 0..<3 {
            #expect(machine.next(at: 1) == .importPage)
            machine.imported(moreComing: true)
        }
        machine.imported(moreComing: false)
        #expect(machine.next(at: 1) == .wait(until: 600 * Self.second))
        machine.wantImport()
        #expect(machine.next(at: 2) == .importPage)
        machine.importFailed(at: 2, retryAfter: .seconds(900), random: 0)
        #expect(machine.next(at: 600 * Self.second) == .exportBatch)
    }

    @Test func `without work the machine waits for an event, and for the time of refused records`() {
        var machine = ready()
        machine.imported(moreComing: false)
        machine.exported(sent: 0, didWork: false, nextTry: nil, at: 0, random: 0)
        #expect(machine.next(at: 0) == .wait(until: nil))
        machine.exported(sent: 0, didWork: false, nextTry: 60 * Self.second, at: 0, random: 0)
        #expect(machine.next(at: 0) == .wait(until: 60 * Self.second))
        #expect(machine.next(at: 60 * Self.second) == .exportBatch)
        machine.wantExport()
        #expect(machine.next(at: 1) == .exportBatch)
    }

    @Test func `an error that a person has to mend stops everything until the next start`() {
        var machine = ready()
        let failure = ContainerEvent.Failure(code: SyncErrorCode.noAccount, reason: "no account is signed in")
        machine.halt(failure)
        machine.wantExport()
        #expect(machine.next(at: .max) == .halt(failure))
        machine.begin()
        #expect(machine.next(at: 0) == .setUp)
    }

    @Test func `waits grow to five minutes, vary at random, and are never shorter than the cloud asks for`() {
        var backoff = SyncMachine.backoff
        var waits: [Int64] = []
        for _ in 0..<12 {
            backoff.fail(at: 0, asked: nil, random: 0)
            waits.append(backoff.notBefore)
        }
        #expect(waits[0...3] == [500_000, 1_000_000, 2_000_000, 4_000_000])
        #expect(waits.last == 150 * Self.second)
        var other = SyncMachine.backoff
        other.fail(at: 0, asked: nil, random: 0.99)
        #expect(other.notBefore > waits[0])
        other.fail(at: 0, asked: .seconds(7), random: 0)
        #expect(other.notBefore == 7 * Self.second)
        other.succeed()
        #expect(other.allows(0))
    }

    @Test func `a step that failed repeatedly is tried soon when the cloud may be back, and not at once`() {
        var machine = SyncMachine()
        for _ in 0..<12 { machine.setUpFailed(at: 0, retryAfter: nil, random: 0.5) }
        guard case .wait(let late?) = machine.next(at: 0) else {
            Issue.record("it does not wait")
            return
        }
        #expect(late > 60 * Self.second)
        machine.hasten(at: Self.second)
        #expect(machine.next(at: Self.second) == .wait(until: 2 * Self.second))
        #expect(machine.next(at: 2 * Self.second) == .setUp)
        // A try that is due earlier is not delayed.
        machine.begin()
        machine.hasten(at: 100 * Self.second)
        #expect(machine.next(at: 0) == .setUp)
    }

    @Test func `the wait that the cloud asked for is kept even if the cloud may be back`() {
        var machine = ready()
        machine.imported(moreComing: false)
        machine.exportFailed(at: 0, retryAfter: .seconds(3600), random: 0)
        machine.hasten(at: Self.second)
        #expect(machine.next(at: 2 * Self.second) == .wait(until: 3600 * Self.second))
        // The request was for that time only; and without a request, or with one of no length, the usual wait counts.
        for told in [nil, Duration.zero] {
            machine.exportFailed(at: 3600 * Self.second, retryAfter: told, random: 0.99)
            machine.hasten(at: 3600 * Self.second)
            #expect(machine.next(at: 3600 * Self.second) == .wait(until: 3601 * Self.second))
        }
    }

    @Test func `failures are counted until the step succeeds`() {
        var machine = SyncMachine()
        machine.setUpFailed(at: 0, retryAfter: nil, random: 0)
        machine.setUpSucceeded()
        machine.importFailed(at: 0, retryAfter: nil, random: 0)
        machine.exportFailed(at: 0, retryAfter: nil, random: 0)
        #expect(machine.failures == 2)
        machine.imported(moreComing: false)
        #expect(machine.failures == 1)
    }

    @Test func `errors of an unreachable or busy cloud may pass, and those that a person has to mend may not`() {
        for code in [CloudError.Code.networkUnavailable, .networkFailure, .serviceUnavailable, .requestRateLimited] {
            #expect(ErrorReaction(code).isPassing)
        }
        for code in [CloudError.Code.internalError, .notAuthenticated, .permissionFailure, .invalidArguments, .zoneNotFound] {
            #expect(!ErrorReaction(code).isPassing)
        }
    }

    @Test func `a cloud that asks for a wait of 0 does not switch waiting off`() {
        var backoff = SyncMachine.backoff
        var waits: [Int64] = []
        for told in [Duration.zero, .zero, .milliseconds(1), .seconds(-5), .zero] {
            backoff.fail(at: 0, asked: told, random: 0)
            waits.append(backoff.notBefore)
        }
        #expect(waits == [500_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000])
        // A request of at least the first step counts.
        backoff.fail(at: 0, asked: .seconds(1), random: 0)
        #expect(backoff.notBefore == Self.second)
    }

    @Test(arguments: [
        (CloudError.Code.networkUnavailable, ErrorReaction.retry), (.serviceUnavailable, .retry), (.requestRateLimited, .retry),
        (.zoneBusy, .retry), (.accountTemporarilyUnavailable, .retry), (.networkFailure, .resend), (.serverRecordChanged, .merge),
        (.unknownItem, .merge), (.limitExceeded, .halve), (.zoneNotFound, .remakeZone), (.userDeletedZone, .wipe),
        (.changeTokenExpired, .refetch), (.referenceViolation, .park), (.batchRequestFailed, .innocent),
        (.assetNotAvailable, .uploadAssets), (.quotaExceeded, .ask), (.notAuthenticated, .ask), (.permissionFailure, .ask),
        (.invalidArguments, .report), (.internalError, .report), (.init(rawValue: "somethingNew"), .report),
    ])
    func `each error of a cloud has its own reaction`(_ code: CloudError.Code, _ reaction: ErrorReaction) {
        #expect(ErrorReaction(code) == reaction)
    }

    @Test func `times of edits are written and read the same, and invalid ones are ignored`() {
        let a = EditTime(microseconds: 1_700_000_000_000_000, device: "A")
        let b = EditTime(microseconds: 1_700_000_000_000_001, device: "B")
        let times = EditTimes(otherwise: a, fields: ["caption": b, "rating": a])
        #expect(times.description == "1700000000000000@A;caption=1700000000000001@B")
        #expect(EditTimes(times.description)["caption"] == b)
        #expect(EditTimes(times.description)["rating"] == a)
        #expect(EditTimes("") == EditTimes())
        let odd = EditTimes("x@y;=5@A;caption;rating=@;z=7@C")
        #expect(odd.otherwise == nil)
        #expect(odd.fields == ["z": EditTime(microseconds: 7, device: "C")])
    }

    @Test func `batches that send nothing lead to a pause, and one that sends something resets their count`() {
        var machine = ready()
        machine.imported(moreComing: false)
        func empty(_ machine: inout SyncMachine, _ count: Int) {
            for _ in 0..<count { machine.exported(sent: 0, didWork: true, nextTry: nil, at: 0, random: 0.5) }
        }
        empty(&machine, SyncMachine.emptyBatchLimit - 1)
        #expect(machine.next(at: 0) == .exportBatch)
        machine.exported(sent: 1, didWork: true, nextTry: nil, at: 0, random: 0.5)
        empty(&machine, SyncMachine.emptyBatchLimit - 1)
        #expect(machine.next(at: 0) == .exportBatch)
        empty(&machine, 1)
        #expect(machine.next(at: 0) == .wait(until: 750_000))
    }

    @Test func `an answer of the cloud brings forward tries that failed while it was away`() {
        var machine = ready()
        for _ in 0..<8 {
            machine.failed(isUnreached: true)
            machine.importFailed(at: 0, retryAfter: nil, random: 0.5)
            machine.exportFailed(at: 0, retryAfter: nil, random: 0.5)
        }
        guard case .wait(let until?) = machine.next(at: 0) else {
            Issue.record("both wait")
            return
        }
        #expect(until > 60 * Self.second)
        machine.answered(.import, at: 0)
        machine.imported(moreComing: false)
        #expect(!machine.isUnreached)
        #expect(machine.next(at: 31 * Self.second) == .exportBatch)
    }

    @Test func `a notification of the cloud brings forward only tries that failed while it was away`() {
        func wait(isUnreached: Bool) -> Int64? {
            var machine = ready()
            machine.imported(moreComing: false)
            for _ in 0..<8 {
                machine.failed(isUnreached: isUnreached)
                machine.importFailed(at: 0, retryAfter: nil, random: 0.5)
                machine.exportFailed(at: 0, retryAfter: nil, random: 0.5)
            }
            machine.cloudNotified(at: 0)
            guard case .wait(let until) = machine.next(at: 0) else { return 0 }
            return until
        }
        #expect((wait(isUnreached: true) ?? .max) < 10 * Self.second)
        #expect((wait(isUnreached: false) ?? 0) > 60 * Self.second)
    }

    @Test func `an operation that needs another set-up each time has longer pauses, until it succeeds`() {
        var machine = ready()
        func renew() -> Int64? {
            machine.renewAll()
            machine.renewSetUp(for: .import, at: 0, retryAfter: nil, random: 0)
            guard case .wait(let until) = machine.next(at: 0) else { return nil }
            machine.setUpSucceeded()
            return until
        }
        #expect([renew(), renew(), renew()] == [500_000, 1_000_000, 2_000_000])
        machine.exported(sent: 1, didWork: false, nextTry: nil, at: 0, random: 0)
        #expect(renew() == 4_000_000)
        machine.imported(moreComing: false)
        #expect(renew() == 500_000)
        machine.begin()
        machine.setUpSucceeded()
        #expect(renew() == 500_000)
    }

    @Test func `an account without room is asked again after ten minutes, and edits are sent in the meantime`() {
        var machine = ready()
        machine.imported(moreComing: false)
        machine.exportLacksRoom(at: 0)
        #expect(machine.next(at: 0) == .wait(until: 600 * Self.second))
        machine.wantExport()
        #expect(machine.next(at: 0) == .exportBatch)
    }

    @Test func `an export that sends something shows that the cloud is back, and one that sends nothing does not`() {
        func wait(sent: Int) -> SyncMachine.Step {
            var machine = ready()
            for _ in 0..<8 {
                machine.failed(isUnreached: true)
                machine.importFailed(at: 0, retryAfter: nil, random: 0.5)
                machine.exportFailed(at: 0, retryAfter: nil, random: 0.5)
            }
            machine.exported(sent: sent, didWork: false, nextTry: nil, at: 0, random: 0)
            #expect(machine.isUnreached == (sent == 0))
            return machine.next(at: 0)
        }
        #expect(wait(sent: 1) == .wait(until: Self.second))
        #expect(wait(sent: 0) == .wait(until: 96 * Self.second))
    }

    @Test func `only a specific error of a record counts as the cause of a failed request`() {
        let id = CloudRecordID("a", in: CloudZoneID("Journal"))
        let outcomes: [RecordOutcome] = [
            .saved(CloudRecord(id, type: "Note")), .deleted(id), .failed(CloudError(.batchRequestFailed, "another has failed")),
        ]
        #expect(!ExportReaction.hasCause(outcomes))
        #expect(ExportReaction.hasCause(outcomes + [.failed(CloudError(.serverRecordChanged, "it has changed"))]))
    }

    @Test func `a record pauses at its twenty-first failure, and its count begins again`() {
        var failures = RecordFailures()
        func fail(_ record: String, _ count: Int, with code: CloudError.Code = .zoneBusy) -> Int {
            (0..<count).count { _ in failures.failed(record, code) }
        }
        for round in 1...2 {
            let (before, last) = (fail("a", 20), fail("a", 1))
            #expect(before == 0 && last == 1, "round \(round)")
        }
        // Each record has a count of its own.
        var (one, other) = (fail("a", 20), fail("b", 20))
        #expect(one == 0 && other == 0)
        failures.end("a")
        (one, other) = (fail("a", 20), fail("b", 1))
        #expect(one == 0 && other == 1)
        // A refusal has a pause of its own, and does not count.
        for code in [CloudError.Code.referenceViolation, .quotaExceeded, .limitExceeded, .invalidArguments] {
            let refused = fail("c", 30, with: code)
            #expect(refused == 0, "\(code)")
        }
        (one, other) = (fail("c", 20), fail("c", 1))
        #expect(one == 0 && other == 1)
    }
}
