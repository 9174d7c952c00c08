import TidemarkModel

/// When a session was used last, as precisely as that is known.
package struct LastUse: Hashable, Sendable {
    private static let minute: Int64 = 60_000_000
    private static let day: Int64 = 24 * 60 * minute

    /// The last noted use: microseconds since 1970 UTC; 0 where none is known.
    package let noted: Int64
    /// The true last use may be so much later, because not every use is noted: microseconds.
    package let accuracy: Int64

    /// ``accuracy`` in seconds, for JSON.
    package var seconds: Int { Int(accuracy / 1_000_000) }

    /// Describes the last use for people, as precisely as it is known: `within the last hour`, `today between 14:42 and 15:42
    /// UTC`. Empty where it is not known.
    ///
    /// - Parameter now: Microseconds since 1970 UTC.
    package func text(at now: Int64) -> String {
        guard noted > 0 else { return "" }
        guard now - noted >= accuracy else {
            let minutes = accuracy / Self.minute
            return switch minutes {
            case 60: "within the last hour"
            case ...1: "within the last minute"
            default: "within the last \(minutes) minutes"
            }
        }
        // The last minute counts as a whole.
        let end = noted + accuracy + Self.minute - 1
        return "\(Self.date(noted, now)) between \(Self.time(noted)) and \(Self.time(end)) UTC"
    }

    private static func date(_ moment: Int64, _ now: Int64) -> String {
        switch now / day - moment / day {
        case 0: "today"
        case 1: "yesterday"
        default: "on \(Timestamp.text(microseconds: moment).prefix(10))"
        }
    }

    private static func time(_ moment: Int64) -> String { String(Timestamp.text(microseconds: moment).dropFirst(11).prefix(5)) }
}

extension Session {
    /// When it was used last.
    package var lastUse: LastUse { LastUse(noted: used, accuracy: kind.noting) }
}

extension PageSession {
    /// When it was used last.
    package var lastUse: LastUse { LastUse(noted: used, accuracy: CredentialStore.pageNoting) }
}
