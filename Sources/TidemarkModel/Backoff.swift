/// When something that has failed is tried again: later each time, and not by all at once.
package struct Backoff: Hashable, Sendable {
    /// Microseconds.
    private let first, longest: Int64
    package private(set) var failures = 0
    /// Microseconds since 1970 UTC.
    package private(set) var notBefore: Int64 = .min
    /// When it has failed last; microseconds since 1970 UTC.
    private var failedAt: Int64 = .min
    /// Whether the other side has said how long to wait.
    private var isTold = false

    /// - Parameters:
    ///   - first: How long is waited after the first failure, at the most. It doubles with each further one.
    ///   - longest: How long is waited at the most.
    package init(first: Duration, longest: Duration) {
        self.first = max(1, Int64(first / .microseconds(1)))
        self.longest = Int64(longest / .microseconds(1))
    }

    /// Counts a failure.
    ///
    /// - Parameters:
    ///   - asked: How long the other side asks to wait.
    ///   - random: From 0 up to 1.
    /// - Returns: How long to wait: without a word of the other side between half of a step and all of it.
    package mutating func fail(asked: Duration? = nil, random: Double = .random(in: 0..<1)) -> Duration {
        .microseconds(wait(asked, random))
    }

    /// Counts a failure, and has ``allows(_:)`` say when to try again.
    ///
    /// - Parameters:
    ///   - asked: How long the other side asks to wait.
    ///   - random: From 0 up to 1.
    package mutating func fail(at now: Int64, asked: Duration?, random: Double) {
        failedAt = now
        notBefore = now + wait(asked, random)
    }

    private mutating func wait(_ asked: Duration?, _ random: Double) -> Int64 {
        let step = first > longest >> min(failures, 62) ? longest : first << failures
        failures += 1
        // Between half of the step and all of it.
        let own = step / 2 + Int64(Double(step / 2) * random)
        // No other side makes a client wait for more than a day.
        let asked = asked.map { Int64(min(max($0, .zero), .seconds(86_400)) / .microseconds(1)) }
        isTold = asked.map { $0 >= first } ?? false
        // One that asks for next to nothing does not make all ask without a pause.
        return asked.map { $0 < first ? max($0, own) : $0 } ?? own
    }

    /// Tries again within the time that is waited after a first failure. What the other side has asked for is waited all the same.
    package mutating func hasten(at now: Int64) {
        if !isTold { notBefore = min(notBefore, now + first) }
    }

    package mutating func succeed() { (failures, notBefore, isTold, failedAt) = (0, .min, false, .min) }

    /// Whether it may be tried again. A clock that was set back since the failure does not make the wait longer.
    package func allows(_ now: Int64) -> Bool { notBefore <= now || now < failedAt }
}
