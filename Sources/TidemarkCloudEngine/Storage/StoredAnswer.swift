package import Foundation

/// The answer to a request, kept for when the request is sent again.
package enum StoredAnswer {
    /// Bytes that an answer counts beside its content.
    package static let overhead: Int64 = 64

    /// Bytes that an answer counts against a quota.
    package static func size(_ answer: Data, token: String) -> Int64 { overhead + Int64(answer.count + token.utf8.count) }
}
