#if canImport(CryptoKit)
    import CryptoKit
    import Foundation
#else
    import COpenSSL
#endif

/// HMAC with SHA-256 (RFC 2104), by CryptoKit or libcrypto.
package enum HMACSHA256 {
    /// Returns the authentication code of bytes: 32 bytes.
    package static func code(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        #if canImport(CryptoKit)
            return Array(HMAC<SHA256>.authenticationCode(for: bytes, using: SymmetricKey(data: key)))
        #else
            var code = [UInt8](repeating: 0, count: 32)
            var count: UInt32 = 0
            // HMAC fails only without memory. Without this check, 32 zero bytes would be taken for a signature.
            precondition(
                HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &code, &count) != nil && count == 32,
                "libcrypto can't compute an HMAC")
            return code
        #endif
    }
}
