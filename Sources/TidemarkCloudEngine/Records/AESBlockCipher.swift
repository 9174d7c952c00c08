import TidemarkModel

#if canImport(CommonCrypto)
    public import CommonCrypto

    /// AES-128 of single blocks, by CommonCrypto.
    struct AESBlockCipher: Sendable {
        private let key: [UInt8]

        /// - Parameter key: 16 bytes.
        init(key: [UInt8]) {
            precondition(key.count == kCCKeySizeAES128)
            self.key = key
        }

        func encrypt(_ block: inout [UInt8]) { run(kCCEncrypt, &block) }
        func decrypt(_ block: inout [UInt8]) { run(kCCDecrypt, &block) }

        private func run(_ operation: Int, _ block: inout [UInt8]) {
            precondition(block.count == kCCBlockSizeAES128)
            var (result, count) = ([UInt8](repeating: 0, count: kCCBlockSizeAES128), 0)
            let status = CCCrypt(
                CCOperation(operation), CCAlgorithm(kCCAlgorithmAES), CCOptions(kCCOptionECBMode), key, key.count, nil, block,
                block.count, &result, result.count, &count)
            precondition(status == kCCSuccess && count == block.count)
            block = result
        }
    }
#else
    import COpenSSL

    /// AES-128 of single blocks, by libcrypto.
    ///
    /// The two contexts keep the expanded key, so that a block takes some 25 ns.
    final class AESBlockCipher: Sendable {
        private struct Contexts: ~Copyable {
            let encrypting: OpaquePointer
            let decrypting: OpaquePointer

            init(key: [UInt8]) {
                // These functions fail only when memory runs out.
                (encrypting, decrypting) = (EVP_CIPHER_CTX_new()!, EVP_CIPHER_CTX_new()!)
                precondition(EVP_EncryptInit_ex(encrypting, EVP_aes_128_ecb(), nil, key, nil) == 1)
                precondition(EVP_DecryptInit_ex(decrypting, EVP_aes_128_ecb(), nil, key, nil) == 1)
                for context in [encrypting, decrypting] { EVP_CIPHER_CTX_set_padding(context, 0) }
            }

            deinit {
                EVP_CIPHER_CTX_free(encrypting)
                EVP_CIPHER_CTX_free(decrypting)
            }
        }

        private let contexts: LockedValue<Contexts>
        private static let blockSize = 16

        /// - Parameter key: 16 bytes.
        init(key: [UInt8]) {
            precondition(key.count == Self.blockSize)
            contexts = LockedValue(Contexts(key: key))
        }

        /// - Parameter block: 16 bytes.
        func encrypt(_ block: inout [UInt8]) {
            precondition(block.count == Self.blockSize)
            let isDone = contexts.withLock { contexts in
                var count: Int32 = 0
                return block.withUnsafeMutableBufferPointer {
                    EVP_EncryptUpdate(contexts.encrypting, $0.baseAddress, &count, $0.baseAddress, Int32($0.count))
                } == 1 && count == Self.blockSize
            }
            precondition(isDone)
        }

        /// - Parameter block: 16 bytes.
        func decrypt(_ block: inout [UInt8]) {
            precondition(block.count == Self.blockSize)
            let isDone = contexts.withLock { contexts in
                var count: Int32 = 0
                return block.withUnsafeMutableBufferPointer {
                    EVP_DecryptUpdate(contexts.decrypting, $0.baseAddress, &count, $0.baseAddress, Int32($0.count))
                } == 1 && count == Self.blockSize
            }
            precondition(isDone)
        }
    }
#endif
