import Foundation

/// Moments as they are stored: microseconds since 1970 UTC.
public enum Timestamp {
    /// From the year 0 to the end of the year 9999, as RFC 3339 has them.
    public static let range: ClosedRange<Int64> = -62_167_219_200_000_000...253_402_300_799_999_999

    /// The system's clock: microseconds since 1970 UTC.
    @Sendable public static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    /// The RFC 3339 text of a moment, in UTC, with as many decimals (0, 3 or 6) as it needs.
    public static func text(microseconds: Int64) -> String {
        let second = 1_000_000 as Int64
        let day = 86_400 as Int64
        let fraction = microseconds.euclideanRemainder(second)
        // Not the difference of the two, which has no room below the earliest moment.
        let seconds = microseconds / second - (microseconds % second < 0 ? 1 : 0)
        let secondOfDay = seconds.euclideanRemainder(day)
        let (year, month, dayOfMonth) = civil(days: (seconds - secondOfDay) / day)
        var text = "\(pad(year, 4))-\(pad(month, 2))-\(pad(dayOfMonth, 2))T"
        text += "\(pad(secondOfDay / 3600, 2)):\(pad(secondOfDay / 60 % 60, 2)):\(pad(secondOfDay % 60, 2))"
        if fraction % 1000 != 0 {
            text += ".\(pad(fraction, 6))"
        } else if fraction != 0 {
            text += ".\(pad(fraction / 1000, 3))"
        }
        return text + "Z"
    }

    /// Year, month and day of the proleptic Gregorian calendar, from days since 1970-01-01.
    private static func civil(days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let dayOfEra = shifted.euclideanRemainder(146_097)
        let era = (shifted - dayOfEra) / 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    private static func pad(_ value: Int64, _ width: Int) -> String {
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
