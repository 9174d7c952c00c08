/// The pause before a failed operation is tried again. It doubles with each failure, and a random part keeps many clients from
/// retrying at the same moment.
package struct Backoff: Hashable, Sendable {
    /// Microseconds.
    private let first, longest: Int64
    package private(set) var failures = 0
    /// Microseconds since 1970 UTC.
    package private(set) var notBefore: Int64 = .min
    /// The time of the last failure; microseconds since 1970 UTC.
    private var failedAt: Int64 = .min
    /// Whether the other side has asked for the current wait.
    private var isTold = false

    /// - Parameters:
    ///   - first: The longest wait after the first failure. It doubles with each further failure.
    ///   - longest: The limit of this doubling.
    package init(first: Duration, longest: Duration) {
        self.first = max(1, Int64(first / .microseconds(1)))
        self.longest = Int64(longest / .microseconds(1))
    }

    /// Counts a failure.
    ///
    /// - Parameters:
    ///   - asked: The wait that the other side asks for; `nil` if it asks for none.
    ///   - random: A number from 0 up to 1.
    /// - Returns: The wait before the next try. If the other side asks for none, it is between half of a step and the whole step.
    package mutating func fail(asked: Duration? = nil, random: Double = .random(in: 0..<1)) -> Duration {
        .microseconds(wait(asked, random))
    }

    /// Counts a failure; from then on ``allows(_:)`` says when the next try is due.
    ///
    /// - Parameters:
    ///   - now: The time of the failure; microseconds since 1970 UTC.
    ///   - asked: The wait that the other side asks for; `nil` if it asks for none.
    ///   - random: A number from 0 up to 1.
    package mutating func fail(at now: Int64, asked: Duration?, random: Double) {
        failedAt = now
        notBefore = now + wait(asked, random)
    }

    private mutating func wait(_ asked: Duration?, _ random: Double) -> Int64 {
        let step = first > longest >> min(failures, 62) ? longest : first << failures
        failures += 1
        // Between half of the step and all of it.
        let own = step / 2 + Int64(Double(step / 2) * random)
        // A client waits for a day at the most, whatever a server asks for.
        let asked = asked.map { Int64(min(max($0, .zero), .seconds(86_400)) / .microseconds(1)) }
        isTold = asked.map { $0 >= first } ?? false
        // A server that asks for less than the first step gets the usual pause: otherwise its clients would retry without one.
        return asked.map { $0 < first ? max($0, own) : $0 } ?? own
    }

    /// Shortens the wait to that of a first failure. A wait that the other side has asked for stays as it is.
    package mutating func hasten(at now: Int64) {
        if !isTold { notBefore = min(notBefore, now + first) }
    }

    package mutating func succeed() { (failures, notBefore, isTold, failedAt) = (0, .min, false, .min) }

    /// Whether the next try is due. A clock that was set back since the failure does not make the wait longer.
    package func allows(_ now: Int64) -> Bool { notBefore <= now || now < failedAt }
}
