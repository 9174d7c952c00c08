#if canImport(CryptoKit)
    import CryptoKit
    package import Foundation

    /// Computes SHA-256 over bytes that arrive in parts, by CryptoKit.
    package struct SHA256Context: ~Copyable {
        private var hash = SHA256()

        package init() {}

        package mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

        package consuming func finish() -> [UInt8] { Array(hash.finalize()) }
    }
#else
    import COpenSSL

    /// Computes SHA-256 over bytes that arrive in parts, by libcrypto.
    package struct SHA256Context: ~Copyable {
        private let context: OpaquePointer

        package init() {
            // This fails only without memory, or without the library's own algorithms. An unchecked failure would yield a false
            // digest, and digests identify assets.
            context = EVP_MD_CTX_new()!
            precondition(EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1, "libcrypto has no SHA-256")
        }

        deinit { EVP_MD_CTX_free(context) }

        package mutating func update(_ bytes: UnsafeRawBufferPointer) {
            precondition(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "libcrypto can't compute a SHA-256")
        }

        package consuming func finish() -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            precondition(EVP_DigestFinal_ex(context, &bytes, &count) == 1 && count == 32, "libcrypto can't end a SHA-256")
            return Array(bytes.prefix(Int(count)))
        }
    }
#endif
