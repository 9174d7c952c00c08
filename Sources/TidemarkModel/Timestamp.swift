public import Foundation

/// Functions for moments, which are stored as microseconds since 1970 UTC.
public enum Timestamp {
    /// The moments that RFC 3339 can name: from the year 0 to the end of the year 9999.
    public static let range: ClosedRange<Int64> = -62_167_219_200_000_000...253_402_300_799_999_999

    /// The system's clock: microseconds since 1970 UTC.
    @Sendable public static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// Returns a clock whose moments are all in ``range``, so that adding a time to one of them can't overflow.
    package static func bounded(_ clock: @escaping @Sendable () -> Int64) -> @Sendable () -> Int64 {
        { min(max(clock(), Self.range.lowerBound), Self.range.upperBound) }
    }

    /// Returns the date of a moment.
    ///
    /// - Parameter microseconds: Microseconds since 1970 UTC.
    public static func date(microseconds: Int64) -> Date { Date(timeIntervalSince1970: Double(microseconds) / 1e6) }

    /// The RFC 3339 text of a moment, in UTC, with as many decimals (0, 3 or 6) as it needs.
    public static func text(microseconds: Int64) -> String { text(microseconds: microseconds, decimals: nil) }

    /// The RFC 3339 text of a moment, in UTC.
    ///
    /// - Parameters:
    ///   - microseconds: Microseconds since 1970 UTC.
    ///   - decimals: The number of decimals: 0, 3 or 6. Further decimals are cut off. `nil` for as many as the moment needs.
    package static func text(microseconds: Int64, decimals: Int?) -> String {
        let second = 1_000_000 as Int64
        let fraction = microseconds.euclideanRemainder(second)
        // Subtracting the fraction from `microseconds` instead could overflow near `Int64.min`.
        let moment = Moment(second: microseconds / second - (microseconds % second < 0 ? 1 : 0))
        var text = "\(pad(moment.year, 4))-\(pad(moment.month, 2))-\(pad(moment.dayOfMonth, 2))T\(moment.timeOfDay)"
        switch decimals ?? (fraction == 0 ? 0 : fraction % 1000 == 0 ? 3 : 6) {
        case 0: break
        case 3: text += ".\(pad(fraction / 1000, 3))"
        default: text += ".\(pad(fraction, 6))"
        }
        return text + "Z"
    }

    /// A second of the proleptic Gregorian calendar, in UTC.
    struct Moment {
        /// Days since 1970-01-01.
        let day: Int64
        let year, month, dayOfMonth, secondOfDay: Int64

        /// - Parameter second: Seconds since 1970 UTC.
        init(second: Int64) {
            secondOfDay = second.euclideanRemainder(86_400)
            day = (second - secondOfDay) / 86_400
            let shifted = day + 719_468
            let dayOfEra = shifted.euclideanRemainder(146_097)
            let era = (shifted - dayOfEra) / 146_097
            let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
            let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
            let shiftedMonth = (5 * dayOfYear + 2) / 153
            month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
            year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
            dayOfMonth = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        }

        /// The time of day, as `08:49:37`.
        var timeOfDay: String { "\(pad(secondOfDay / 3600, 2)):\(pad(secondOfDay / 60 % 60, 2)):\(pad(secondOfDay % 60, 2))" }
    }

    static func pad(_ value: Int64, _ width: Int) -> String {
        let digits = String(value.magnitude)
        return (value < 0 ? "-" : "") + String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Int64 {
    fileprivate func euclideanRemainder(_ divisor: Int64) -> Int64 {
        let remainder = self % divisor
        return remainder < 0 ? remainder + divisor : remainder
    }
}
