/// When a field was edited: a moment of a hybrid logical clock, and the device that edited it.
///
/// A store's clock never runs backwards and never stands still between two transactions: it is the wall clock, or, where that is not
/// past the last transaction, one microsecond after it. Of two edits in one moment that of the greater device identifier is the later.
public struct EditTime: Codable, Hashable, Sendable {
    /// Microseconds since 1970 UTC.
    public var microseconds: Int64
    /// The identifier of the device that edited it.
    public var device: String

    /// Makes a time.
    ///
    /// - Parameter microseconds: Microseconds since 1970 UTC.
    public init(microseconds: Int64, device: String) {
        self.microseconds = microseconds
        self.device = device
    }

    /// How far ahead of one's own clock another's is believed.
    public static let greatestLead: Int64 = 5 * 60 * 1_000_000

    /// The time as it counts where the clock shows `now`: at most five minutes later.
    public func clamped(to now: Int64) -> EditTime {
        let (most, isTooMuch) = now.addingReportingOverflow(Self.greatestLead)
        return EditTime(microseconds: isTooMuch ? microseconds : min(microseconds, most), device: device)
    }
}

extension EditTime: Comparable {
    public static func < (left: EditTime, right: EditTime) -> Bool {
        (left.microseconds, left.device) < (right.microseconds, right.device)
    }
}
