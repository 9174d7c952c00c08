#if canImport(CryptoKit)
    public import CryptoKit
    public import Foundation

    /// SHA-256 of bytes as they come, by CryptoKit.
    struct SHA256Context: ~Copyable {
        private var hash = SHA256()

        mutating func update(_ bytes: UnsafeRawBufferPointer) { hash.update(bufferPointer: bytes) }

        consuming func finish() -> [UInt8] { Array(hash.finalize()) }
    }
#else
    import COpenSSL

    /// SHA-256 of bytes as they come, by libcrypto.
    struct SHA256Context: ~Copyable {
        private let context: OpaquePointer

        init() {
            // It fails only without memory.
            context = EVP_MD_CTX_new()!
            EVP_DigestInit_ex(context, EVP_sha256(), nil)
        }

        deinit { EVP_MD_CTX_free(context) }

        mutating func update(_ bytes: UnsafeRawBufferPointer) { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }

        consuming func finish() -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
            var count: UInt32 = 0
            EVP_DigestFinal_ex(context, &bytes, &count)
            return Array(bytes.prefix(Int(count)))
        }
    }
#endif
