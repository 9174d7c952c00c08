import CTideManifest
import Foundation

extension TimeZone {
    /// The offsets of the zone, each with the time from which on it holds, until the year 2200. The last one holds from then on.
    /// Empty for UTC.
    var offsets: [tide_zone_offset] {
        let end = Date(timeIntervalSince1970: 7_258_118_400)
        // Before the first time zones were introduced.
        var time = Date(timeIntervalSince1970: -5_000_000_000)
        var offsets = [tide_zone_offset(since: Int64.min / 2, offset: Int32(secondsFromGMT(for: time)))]
        while let next = nextDaylightSavingTimeTransition(after: time), next > time, next < end {
            time = next
            let since = Int64(next.timeIntervalSince1970.rounded())
            offsets.append(tide_zone_offset(since: since, offset: Int32(secondsFromGMT(for: next))))
        }
        return offsets.count == 1 && offsets[0].offset == 0 ? [] : offsets
    }
}
