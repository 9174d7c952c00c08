import Foundation
import Testing
import TidemarkModel
import TidemarkSQLite
import TidemarkStore

@testable import TidemarkCommands

/// Goal: a person who watches a synchronisation is told once of each problem, and once that it is over, whichever stores it
/// concerns. Method: events in an order as they occur, and which of them are shown.
@Suite(.timeLimit(.minutes(30))) struct SyncNewsTests {
    private let own = UUID()
    private let others = UUID()

    private func event(
        _ kind: ContainerEvent.Kind, _ store: UUID, _ failure: ContainerEvent.Failure? = nil, records: Int = 0
    ) -> ContainerEvent {
        var event = ContainerEvent(store: store, kind: kind, start: 0)
        (event.end, event.failure, event.records) = (1, failure, records)
        return event
    }

    private let away = ContainerEvent.Failure(code: SyncErrorCode.other, reason: "it can't be reached", isPassing: true)
    private let ended = ContainerEvent.Failure(code: SyncErrorCode.noAccount, reason: "the session has ended")

    @Test func `an unreachable server is shown once, and once that it is reachable again`() {
        var news = SyncNews()
        let told = [
            event(.setup, own), event(.setup, others), event(.import, own, away), event(.import, others, away),
            event(.import, own, away), event(.import, others), event(.import, own), event(.import, own),
        ].map { news.tells($0) }
        #expect(told == [true, false, true, false, false, false, true, false])
        // The next time it is shown again.
        let isToldAgain = news.tells(event(.import, others, away))
        #expect(isToldAgain)
    }

    @Test func `an ended session is shown once, by the set-up, and so is its end`() {
        var news = SyncNews()
        let told = [
            event(.setup, own), event(.setup, others), event(.import, own, ended), event(.export, own, ended),
            event(.setup, own, ended), event(.import, others, ended), event(.setup, others, ended), event(.setup, own, ended),
            event(.setup, own), event(.setup, others),
        ].map { news.tells($0) }
        #expect(told == [true, false, false, false, true, false, false, false, false, true])
    }

    @Test func `a failure that the next set-up does not explain is shown once`() {
        var news = SyncNews()
        let told = [
            event(.setup, own), event(.setup, others), event(.import, own, ended), event(.setup, others),
            event(.import, own, ended),
            event(.setup, own), event(.import, own, ended), event(.setup, own), event(.import, own, ended),
            event(.export, own, ended),
            event(.import, own),
        ].map { news.tells($0) }
        #expect(told == [true, false, false, false, false, false, true, false, false, false, true])
        // If set-up explains the failure, only that is shown.
        let later = [
            event(.import, own, ended), event(.setup, own, ended), event(.import, own, ended),
        ].map { news.tells($0) }
        #expect(later == [false, true, false])
    }

    @Test func `each change of the reason of a failure is shown`() {
        var news = SyncNews()
        let told = [
            event(.setup, own), event(.setup, others), event(.setup, own, ended), event(.setup, others, ended),
            event(.setup, own, away), event(.setup, others, away), event(.setup, others, ended), event(.setup, own, ended),
        ].map { news.tells($0) }
        #expect(told == [true, false, true, false, true, false, true, false])
    }

    @Test func `an event with records is shown, even if it failed`() {
        var news = SyncNews()
        let told = [
            event(.export, own, ended, records: 3), event(.import, others, records: 1), event(.import, others),
        ].map { news.tells($0) }
        #expect(told == [true, true, false])
    }

    @Test func `each reason to try again is shown once, and none if the tool does not try again`() {
        var tries = RetryNews(patience: 10)
        let lines = [event(.setup, own, away), event(.setup, own, away), event(.setup, own, ended), event(.setup, own)]
            .map { tries.line($0) }
        #expect(lines == ["note: trying for up to 10 s in all: it can't be reached", nil, nil, nil])
        // If the cloud asks for a longer wait than the patience, the tool does not try again.
        let asked = [10, 11].map { seconds in
            let busy = ContainerEvent.Failure(
                code: SyncErrorCode.other, reason: "wait for \(seconds)", isPassing: true, retryAfter: .seconds(seconds))
            return tries.line(event(.export, own, busy))
        }
        #expect(asked == ["note: trying for up to 10 s in all: wait for 10", nil])
        var none = RetryNews(patience: 0)
        let line = none.line(event(.setup, own, away))
        #expect(line == nil)
    }

    @Test func `a failure that may pass has the exit code for trying again later`() {
        #expect(away.exitStatus == .temporaryFailure)
        let busy = ContainerEvent.Failure(code: SyncErrorCode.noAccount, reason: "", isPassing: true)
        #expect(busy.exitStatus == .temporaryFailure)
        #expect(ContainerEvent.Failure(code: SyncErrorCode.noAccount, reason: "").exitStatus == .unavailable)
        #expect(ContainerEvent.Failure(code: SyncErrorCode.notInitialized, reason: "").exitStatus == .unavailable)
    }

    @Test(arguments: [
        (3, 0, 0, "3 records set aside"), (1, 2, 0, "1 record set aside, with 2 changes that the cloud does not have"),
        (0, 0, 2, "2 refused saves set aside"),
        (2, 1, 1, "2 records and 1 refused save set aside, with 1 change that the cloud does not have"),
        (0, 1, 0, "set aside: 1 change that the cloud does not have"), (0, 0, 0, "nothing set aside"),
    ])
    func `the report of a quarantine leaves out zeros`(_ records: Int, _ pending: Int, _ refused: Int, _ text: String) throws {
        let json = #"{"id":"\#(UUID())","time":1,"reason":"","records":\#(records),"pending":\#(pending),"refusals":\#(refused)}"#
        let quarantine = try JSONDecoder().decode(Quarantine.self, from: Data(json.utf8))
        #expect(quarantine.counts("the cloud") == text)
        #expect(quarantine.isEmpty == (text == "nothing set aside"))
    }

    @Test func `an event names its store only on request`() {
        #expect(EventLine(event(.import, own, records: 1), of: .shared).text.hasSuffix("done  1 record  (what others share)"))
        #expect(EventLine(event(.import, own, records: 1), of: .private).text.hasSuffix("done  1 record"))
        #expect(EventLine(event(.import, own, records: 1)).text.hasSuffix("done  1 record"))
    }
}
