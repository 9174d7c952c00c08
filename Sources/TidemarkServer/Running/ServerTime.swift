import Foundation
import Synchronization

/// The time as servers write it.
enum ServerTime {
    /// Microseconds since 1970 UTC.
    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000
    }

    /// Seconds that only go on, since whenever.
    static func seconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// As `2026-11-21T08:00:00.123Z`.
    static func text(microseconds: Int64) -> String {
        var second = time_t(microseconds / 1_000_000)
        var parts = tm()
        gmtime_r(&second, &parts)
        let milliseconds = Int(microseconds / 1_000 % 1_000)
        return "\(digits(Int(parts.tm_year) + 1900, 4))-\(digits(Int(parts.tm_mon) + 1, 2))-\(digits(Int(parts.tm_mday), 2))"
            + "T\(digits(Int(parts.tm_hour), 2)):\(digits(Int(parts.tm_min), 2)):\(digits(Int(parts.tm_sec), 2))"
            + ".\(digits(milliseconds, 3))Z"
    }

    private static let shown = Mutex<(second: Int64, text: String)>((.min, ""))

    /// The present time as the header `Date` has it; made once a second.
    static func header() -> String {
        let now = now() / 1_000_000
        return shown.withLock { shown in
            if shown.second != now { shown = (now, header(second: now)) }
            return shown.text
        }
    }

    static func header(second: Int64) -> String {
        var time = time_t(second)
        var parts = tm()
        gmtime_r(&time, &parts)
        let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        return "\(days[Int(parts.tm_wday)]), \(digits(Int(parts.tm_mday), 2)) \(months[Int(parts.tm_mon)]) "
            + "\(digits(Int(parts.tm_year) + 1900, 4)) \(digits(Int(parts.tm_hour), 2)):\(digits(Int(parts.tm_min), 2))"
            + ":\(digits(Int(parts.tm_sec), 2)) GMT"
    }

    private static func digits(_ number: Int, _ count: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, count - text.count)) + text
    }
}
