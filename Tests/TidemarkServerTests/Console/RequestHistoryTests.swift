import Testing
import TidemarkConsole
import TidemarkModel

@testable import TidemarkServer

/// Goal: the console's figures are those of the last hour, day and week. Method: a clock that the test sets.
@Suite(.timeLimit(.minutes(30))) struct RequestHistoryTests {
    private static let start: Int64 = 1_800_000_000_000_000

    private func request(at time: Int64, status: Int = 200, ms: Double = 4, _ container: String = "journal") -> ServedRequest {
        ServedRequest(
            at: time, operation: "records.query", status: status, milliseconds: ms, container: container,
            environment: "development",
            account: "", address: "192.0.2.1")
    }

    @Test func `samples count requests and errors, and drop those that are older than their span`() {
        let time = LockedValue(Self.start)
        let history = RequestHistory { time.withLock { $0 } }
        for (offset, status, ms) in [(0, 200, 1), (0, 500, 900), (61, 200, 3), (3_601, 404, 40)] as [(Int64, Int, Double)] {
            history.record(request(at: Self.start + offset * 1_000_000, status: status, ms: ms))
        }
        time.withLock { $0 = Self.start + 3_601 * 1_000_000 }
        let hour = history.history(.hour)
        #expect(hour.count == 60)
        #expect(hour.map(\.requests).reduce(0, +) == 2)
        #expect(hour.last?.requests == 1 && hour.last?.refused == 1 && hour.last?.errors == 0 && hour.last?.slow == 50)
        let day = history.history(.day)
        #expect(day.count == 96 && day.map(\.requests).reduce(0, +) == 4 && day.map(\.errors).reduce(0, +) == 1)
        #expect(day.map(\.refused).reduce(0, +) == 1)
        #expect(day.map(\.slow).max() == 1_000)
        time.withLock { $0 = Self.start + 8 * 86_400 * 1_000_000 }
        for span in FigureSpan.allCases { #expect(history.history(span).allSatisfy { $0.requests == 0 }, "\(span)") }
    }

    @Test func `the last thousand requests are kept, the newest first, of one container or of all`() {
        let history = RequestHistory { Self.start }
        for number in 0..<1_200 { history.record(request(at: Self.start + Int64(number), number % 2 == 0 ? "journal" : "other")) }
        #expect(history.requests(of: nil).map(\.at) == (200..<1_200).reversed().map { Self.start + Int64($0) })
        #expect(history.requests(of: "other").count == 500)
        #expect(history.requests(of: "none").isEmpty)
    }
}
