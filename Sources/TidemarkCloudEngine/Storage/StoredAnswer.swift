package import Foundation

/// The answer to a request, kept for when the request is sent again.
package enum StoredAnswer {
    /// Bytes that an answer counts beside its content.
    package static let overhead: Int64 = 64

    /// Bytes that an answer counts against a quota.
    package static func size(_ answer: Data, token: String) -> Int64 { overhead + Int64(answer.count + token.utf8.count) }
}

/// When answers end: those that are older than a request may be when it is sent again, but for the newest of each user.
///
/// The newest stay, because a clock is no promise: where it is set a year ahead between a request and its repetition, the answer seems to be
/// a year old. They are the newest by the order in which they were stored. A device repeats its last request; 32 devices can be at it.
public struct AnswerAge: Sendable {
    /// The answers of a user that stay, whatever their age.
    package static let newest = 32
    private static let age: Int64 = 7 * 86_400 * 1_000_000
    private static let tolerance: Int64 = 86_400 * 1_000_000

    /// What was stored before this time has ended. Microseconds since 1970 UTC.
    package let start: Int64
    /// Where a user's newest answer is later than this, the clock was ahead, and has been set back. Then all but the newest end: by their times
    /// they would stay until the clock is there again.
    package let end: Int64

    package init(at now: Int64) { (start, end) = (now - Self.age, now + Self.tolerance) }
}
