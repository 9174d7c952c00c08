import TidemarkConsole
import TidemarkModel

/// Remembers the requests that this server has answered: counts for the last hour, day and week, and the last requests.
final class RequestHistory: Sendable {
    /// The counts of one step, which is some minutes long.
    private struct Bucket: Sendable {
        /// The number of the step since 1970.
        var number: Int64 = -1
        var requests = 0
        /// Requests that were refused, and requests that failed because of the server.
        var refused = 0, errors = 0
        /// The number of answers that took at most as long as each of ``bounds``; the last counts all longer ones.
        var latencies = [Int](repeating: 0, count: RequestHistory.bounds.count + 1)
    }

    private struct State: Sendable {
        /// By span. A bucket is used again after as many steps as the span has.
        var buckets: [[Bucket]]
        /// The last requests. Once there are enough, ``next`` is the oldest.
        var requests: [ServedRequest] = []
        var next = 0
    }

    /// Milliseconds.
    private static let bounds: [Double] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000]
    /// The number of requests that are remembered.
    private static let most = 1_000

    private let state = LockedValue(
        State(buckets: FigureSpan.allCases.map { [Bucket](repeating: Bucket(), count: $0.count) }))
    private let now: @Sendable () -> Int64

    /// - Parameter now: Microseconds since 1970 UTC; a parameter for tests.
    init(now: @escaping @Sendable () -> Int64 = Timestamp.now) { self.now = now }

    /// Remembers a request that was answered.
    func record(_ request: ServedRequest) {
        let second = request.at / 1_000_000
        let place = Self.bounds.firstIndex { request.milliseconds <= $0 } ?? Self.bounds.count
        state.withLock { state in
            for (index, span) in FigureSpan.allCases.enumerated() {
                let number = second / span.step
                let at = Int(number % Int64(span.count))
                if state.buckets[index][at].number != number { state.buckets[index][at] = Bucket(number: number) }
                state.buckets[index][at].requests += 1
                switch request.status {
                case 500...: state.buckets[index][at].errors += 1
                case 400...: state.buckets[index][at].refused += 1
                default: break
                }
                state.buckets[index][at].latencies[place] += 1
            }
            if state.requests.count < Self.most {
                state.requests.append(request)
            } else {
                state.requests[state.next] = request
                state.next = (state.next + 1) % Self.most
            }
        }
    }

    func history(_ span: FigureSpan) -> [FigureSample] {
        let last = now() / 1_000_000 / span.step
        let index = FigureSpan.allCases.firstIndex(of: span) ?? 0
        let buckets = state.withLock { $0.buckets[index] }
        return ((last - Int64(span.count) + 1)...last).map { number in
            let bucket = buckets[Int(number % Int64(span.count))]
            let began = number * span.step * 1_000_000
            guard bucket.number == number else {
                return FigureSample(began: began, requests: 0, refused: 0, errors: 0, median: 0, slow: 0)
            }
            return FigureSample(
                began: began, requests: bucket.requests, refused: bucket.refused, errors: bucket.errors,
                median: Self.bound(0.5, bucket), slow: Self.bound(0.95, bucket))
        }
    }

    func requests(of container: String?) -> [ServedRequest] {
        let (requests, next) = state.withLock { ($0.requests, $0.next) }
        let ordered = requests[next...] + requests[..<next]
        return ordered.reversed().filter { container == nil || $0.container == container }
    }

    /// Returns the milliseconds within which a share of the requests was answered: one of ``bounds``.
    private static func bound(_ share: Double, _ bucket: Bucket) -> Double {
        let wanted = Int((Double(bucket.requests) * share).rounded(.up))
        var count = 0
        for (place, number) in bucket.latencies.enumerated() {
            count += number
            if count >= wanted { return place < bounds.count ? bounds[place] : bounds[bounds.count - 1] }
        }
        return 0
    }
}
