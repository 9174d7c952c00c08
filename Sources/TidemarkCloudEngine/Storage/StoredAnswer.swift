package import Foundation

/// The answer to a request, kept for when the request is sent again.
package enum StoredAnswer {
    /// Bytes that an answer counts beside its content.
    package static let overhead: Int64 = 64

    /// Bytes that an answer counts against a quota.
    package static func size(_ answer: Data, token: String) -> Int64 { overhead + Int64(answer.count + token.utf8.count) }
}

/// The age at which replies end. Replies older than any repeated request can be end, except each user's newest ones.
///
/// The newest stay, because clocks jump: where a clock is set a year ahead between a request and its repetition, the answer seems to be a year
/// old. They are the newest by the order in which they were stored. A device repeats its last request; 32 devices can do so at once.
public struct AnswerAge: Sendable {
    /// The answers of a user that stay, whatever their age.
    package static let newest = 32
    private static let age: Int64 = 7 * 86_400 * 1_000_000
    private static let tolerance: Int64 = 86_400 * 1_000_000

    /// Microseconds since 1970 UTC, as the other times.
    package let now: Int64
    /// Answers that were stored before this time have ended.
    package let start: Int64
    /// Where a user's newest answer is later than this, the clock was ahead, and has been set back: a sweep sets the times of the answers back as
    /// well. As they are, the answers would stay until the clock is there again.
    package let end: Int64

    package init(at now: Int64) { (self.now, start, end) = (now, now - Self.age, now + Self.tolerance) }
}
