/// The time of an edit to a field: a moment of a hybrid logical clock, and the device that made the edit.
///
/// A store's clock never runs backwards and never stands still between two transactions. It is the wall clock; if that is not
/// past the last transaction, it is one microsecond after that transaction. Of two edits in the same microsecond, the one from
/// the greater device identifier counts as later.
public struct EditTime: Codable, Hashable, Sendable {
    /// Microseconds since 1970 UTC.
    public var microseconds: Int64
    /// The identifier of the device that made the edit.
    public var device: String

    /// Makes a time.
    ///
    /// - Parameters:
    ///   - microseconds: Microseconds since 1970 UTC.
    ///   - device: The identifier of the device that made the edit.
    public init(microseconds: Int64, device: String) {
        self.microseconds = microseconds
        self.device = device
    }

    /// How far ahead of this device's clock an edit time may be; microseconds. ``clamped(to:)`` moves later times back to this
    /// limit.
    public static let greatestLead: Int64 = 5 * 60 * 1_000_000

    /// Returns the time, or a time five minutes after `now` if that is earlier.
    ///
    /// - Parameter now: The time of this device's clock; microseconds since 1970 UTC.
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
