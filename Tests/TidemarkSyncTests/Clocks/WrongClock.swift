import TidemarkModel
import TidemarkTesting

/// A clock that shows a wrong time.
enum WrongClock: String, CaseIterable, Sendable {
    case tenYearsAhead, tenYearsBehind
    /// It shows the beginning of 1970, or a year before.
    case of1970, of1969
    /// It shows the greatest time of a clock that counts nanoseconds in 64 bits.
    case of2262
    /// It shows the greatest or least time of a clock that counts microseconds in 64 bits.
    case greatest, least
    /// It goes back by an hour at each reading.
    case backward
    /// At each reading it is wrong by another time of up to ten years.
    case jumping

    static let tenYears: Int64 = 3653 * 86_400 * 1_000_000

    /// The clock.
    ///
    /// - Parameter right: The right time, in microseconds since 1970 UTC.
    func reading(_ right: @escaping @Sendable () -> Int64) -> @Sendable () -> Int64 {
        let begin = right()
        switch self {
        case .tenYearsAhead: return { right() + Self.tenYears }
        case .tenYearsBehind: return { right() - Self.tenYears }
        case .of1970: return { right() - begin }
        case .of1969: return { right() - begin - 365 * 86_400 * 1_000_000 }
        case .of2262: return { 9_223_372_036_854_775 }
        case .greatest: return { .max }
        case .least: return { .min }
        case .backward:
            let looks = LockedValue<Int64>(0)
            return {
                let count = looks.withLock { looks -> Int64 in
                    looks += 1
                    return looks
                }
                return right() - count * 3_600_000_000
            }
        case .jumping:
            let random = LockedValue(SeededRandom(42))
            return {
                right() + random.withLock { random -> Int64 in Int64.random(in: -Self.tenYears...Self.tenYears, using: &random) }
            }
        }
    }
}

/// The clock of a device, which can be corrected.
final class DeviceClock: Sendable {
    private let right: @Sendable () -> Int64
    private let wrong: @Sendable () -> Int64
    private let isRight = LockedValue(false)

    init(_ clock: WrongClock, beside right: @escaping @Sendable () -> Int64) {
        (self.right, wrong) = (right, clock.reading(right))
    }

    var now: Int64 { isRight.withLock(\.self) ? right() : wrong() }

    func putRight() { isRight.withLock { $0 = true } }
}
