import COpenSSL
import Foundation

/// The stored hash of a password: scrypt (RFC 7914) with a salt.
struct PasswordHash: Hashable, Sendable {
    /// The cost of a hash: 128 · 2^`logN` · `r` bytes of memory, and time in proportion to that and to `p`.
    struct Cost: Hashable, Sendable {
        var logN: Int64
        var r: Int64
        var p: Int64

        /// 128 MB, and some four tenths of a second: the least that OWASP's Password Storage Cheat Sheet asks of scrypt.
        static let usual = Cost(logN: 17, r: 8, p: 1)

        /// Bytes of memory.
        var memory: Int64 { (128 * r) << logN }

        /// The time that it takes, relative to other costs.
        var work: Int64 { (r * p) << logN }

        /// Whether the cost is acceptable: a damaged file may have any.
        var isBounded: Bool {
            (1...20).contains(logN) && (1...16).contains(r) && (1...16).contains(p) && memory <= 256 << 20 && work <= 1 << 24
        }
    }

    let cost: Cost
    let salt: [UInt8]
    let digest: [UInt8]

    static let saltSize = 16
    /// The memory of the largest cost, and what scrypt needs besides.
    private static let memoryMax: UInt64 = 272 << 20

    /// - Throws: ``CredentialError`` `storage` when the memory for it can't be had.
    init(_ password: [UInt8], salt: [UInt8], cost: Cost) throws(CredentialError) {
        var digest = [UInt8](repeating: 0, count: 32)
        let isDone = password.withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { text in
                EVP_PBE_scrypt(
                    text.baseAddress, text.count, salt, salt.count, 1 << UInt64(cost.logN), UInt64(cost.r), UInt64(cost.p),
                    Self.memoryMax, &digest, digest.count)
            }
        }
        guard cost.isBounded, isDone == 1 else {
            ERR_clear_error()
            throw CredentialError(.storage, "a password can't be hashed: there is no memory for it, or access.sqlite is damaged")
        }
        self.init(cost: cost, salt: salt, digest: digest)
    }

    init(cost: Cost, salt: [UInt8], digest: [UInt8]) {
        self.cost = cost
        self.salt = salt
        self.digest = digest
    }

    /// A password's bytes, in the normal form C of Unicode: a password is the same whatever keyboard it is typed on.
    ///
    /// - Returns: `nil` when there are fewer than 8 or more than 1,024 bytes, or one is zero.
    static func bytes(of password: String) -> [UInt8]? {
        // A far too long text is not even normalised: its normal form has at least a third of its bytes.
        guard password.utf8.count <= 4096 else { return nil }
        let bytes = Array(password.precomposedStringWithCanonicalMapping.utf8)
        // HMAC, in scrypt, pads with zeros: with and without zeros at its end, a password would have the same hash.
        return (8...1024).contains(bytes.count) && !bytes.contains(0) ? bytes : nil
    }
}
