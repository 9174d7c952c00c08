import CTideCore
import Foundation

/// The digest of a row that a database keeps beside it: XXH3-128. It detects accident, not malice.
package enum RowDigest {
    package static let size = 16

    package static func of(_ bytes: [UInt8]) -> Data {
        var digest = Data(count: size)
        digest.withUnsafeMutableBytes { digest in
            tide_digest_bytes(bytes, bytes.count, digest.bindMemory(to: UInt8.self).baseAddress!)
        }
        return digest
    }
}
