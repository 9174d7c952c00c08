import Dispatch
import Foundation
import TidemarkModel

/// The time in the forms that servers need.
enum ServerTime {
    /// Returns the seconds of a monotonic clock.
    static func seconds() -> Double {
        Double(DispatchTime.now().uptimeNanoseconds) / 1e9
    }

    private static let shown = LockedValue<(second: Int64, text: String)>((.min, ""))

    /// Returns the present time in the form of the `Date` header. It is made once a second.
    static func header() -> String {
        let now = Timestamp.now() / 1_000_000
        return shown.withLock { shown in
            if shown.second != now { shown = (now, HTTPDate.text(second: now)) }
            return shown.text
        }
    }
}
