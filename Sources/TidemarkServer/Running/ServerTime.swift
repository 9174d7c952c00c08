import Dispatch
import Foundation
import TidemarkModel

/// The time as servers need it.
enum ServerTime {
    /// Seconds that only go on, since whenever.
    static func seconds() -> Double {
        Double(DispatchTime.now().uptimeNanoseconds) / 1e9
    }

    private static let shown = LockedValue<(second: Int64, text: String)>((.min, ""))

    /// The present time as the header `Date` has it; made once a second.
    static func header() -> String {
        let now = Timestamp.now() / 1_000_000
        return shown.withLock { shown in
            if shown.second != now { shown = (now, HTTPDate.text(second: now)) }
            return shown.text
        }
    }
}
