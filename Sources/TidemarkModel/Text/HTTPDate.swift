/// Moments as the headers of HTTP have them (RFC 9110, section 5.6.7).
///
/// Foundation of Swift 6.3 has no such format style on Linux, and Hummingbird's is internal.
package enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// Returns a moment as `Sun, 06 Nov 1994 08:49:37 GMT`.
    ///
    /// - Parameter second: Seconds since 1970 UTC, from the year 0 to the year 9999.
    package static func text(second: Int64) -> String {
        let moment = Timestamp.Moment(second: second)
        // The first day of 1970 was a Thursday.
        let weekday = days[Int((moment.day % 7 + 7 + 4) % 7)]
        return
            "\(weekday), \(Timestamp.pad(moment.dayOfMonth, 2)) \(months[Int(moment.month) - 1]) \(Timestamp.pad(moment.year, 4)) "
            + "\(moment.timeOfDay) GMT"
    }
}
