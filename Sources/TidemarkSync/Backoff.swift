import TidemarkModel

/// When something that has failed is tried again: later each time, and not by all at once.
struct Backoff: Hashable, Sendable {
    private(set) var failures = 0
    /// Microseconds since 1970 UTC.
    private(set) var notBefore: Int64 = .min
    /// Whether the cloud has said how long to wait.
    private var isTold = false

    static let first: Int64 = 1_000_000
    static let longest: Int64 = 5 * 60 * 1_000_000

    /// - Parameters:
    ///   - told: How long the cloud says to wait.
    ///   - random: From 0 up to 1.
    mutating func fail(at now: Int64, told: Duration?, random: Double) {
        let step = min(Self.longest, Self.first << min(failures, 30))
        failures += 1
        // Between half of the step and all of it.
        let own = step / 2 + Int64(Double(step / 2) * random)
        // No cloud makes anybody wait for more than a day.
        let asked = told.map { Int64(min(max($0, .zero), .seconds(86_400)) / .microseconds(1)) }
        // One that asks for next to nothing does not make everybody ask without a pause.
        let wait = asked.map { $0 < Self.first ? max($0, own) : $0 } ?? own
        isTold = asked.map { $0 >= Self.first } ?? false
        notBefore = now + wait
    }

    /// Tries again within the time that is waited after a first failure. What a cloud has asked for is waited all the same.
    mutating func hasten(at now: Int64) {
        if !isTold { notBefore = min(notBefore, now + Self.first) }
    }

    mutating func succeed() { self = Backoff() }

    func allows(_ now: Int64) -> Bool { notBefore <= now }
}
