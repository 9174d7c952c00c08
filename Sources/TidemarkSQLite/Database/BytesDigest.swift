import CTideCore
package import Foundation

/// The XXH3-128 of bytes, as a database keeps it beside a row. It detects accident, not malice.
package enum BytesDigest {
    package static let size = 16

    package static func of(_ bytes: [UInt8]) -> Data {
        var digest = Data(count: size)
        digest.withUnsafeMutableBytes { digest in
            tide_digest_bytes(bytes, bytes.count, digest.bindMemory(to: UInt8.self).baseAddress!)
        }
        return digest
    }
}
