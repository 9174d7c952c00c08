import COpenSSL
import Foundation

/// A public key of ECDSA over the curve P-256.
///
/// `@unchecked Sendable`: the key is not changed once it is made, and libcrypto lets several threads verify with one.
final class PublicKey: @unchecked Sendable {
    private let key: OpaquePointer
    /// The key as SubjectPublicKeyInfo: the curve by its name, the point uncompressed. 91 bytes, the same for the same key.
    let der: [UInt8]

    /// The beginning of each key of P-256, up to the point.
    private static let prefix: [UInt8] = [
        0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d,
        0x03,
        0x01, 0x07, 0x03, 0x42, 0x00,
    ]
    private static let sizeMax = 8192

    /// - Throws: ``CredentialError`` `invalid`.
    convenience init(pem: String) throws(CredentialError) {
        guard pem.utf8.count <= Self.sizeMax else {
            throw CredentialError(
                .invalid, "the public key has over \(Self.sizeMax) bytes: name the file that has only the key, in PEM")
        }
        let lines = pem.split(whereSeparator: \.isNewline).map { $0.trimmingCharacters(in: .whitespaces) }
        guard !lines.contains(where: { $0.hasPrefix("-----BEGIN") && $0.hasSuffix("PRIVATE KEY-----") }) else {
            throw CredentialError(
                .invalid,
                "this is a private key, which its owner keeps; the public one is made of it by 'openssl ec -in FILE -pubout'")
        }
        guard let begin = lines.firstIndex(of: "-----BEGIN PUBLIC KEY-----"),
            let end = lines[begin...].firstIndex(of: "-----END PUBLIC KEY-----")
        else {
            throw CredentialError(
                .invalid, "there is no public key in PEM, which begins with '-----BEGIN PUBLIC KEY-----' and has an end")
        }
        guard let der = Data(base64Encoded: lines[(begin + 1)..<end].joined()), !der.isEmpty else {
            throw CredentialError(.invalid, "the public key is damaged: between its first and last line it is not base64")
        }
        try self.init(der: Array(der))
    }

    /// - Throws: ``CredentialError`` `invalid`.
    init(der given: [UInt8]) throws(CredentialError) {
        guard let found = Self.read(given) else {
            throw CredentialError(.invalid, "the public key is damaged: it can't be decoded")
        }
        defer { EVP_PKEY_free(found) }
        guard let point = Self.point(of: found) else {
            throw CredentialError(
                .invalid,
                "the public key is not one of ECDSA over P-256; make one by 'openssl ecparam -name prime256v1 -genkey -noout'")
        }
        der = Self.prefix + [4] + point
        guard let key = Self.read(der) else { throw CredentialError(.invalid, "the public key is no point of the curve P-256") }
        self.key = key
    }

    deinit { EVP_PKEY_free(key) }

    private static func read(_ der: [UInt8]) -> OpaquePointer? {
        defer { ERR_clear_error() }
        return der.withUnsafeBufferPointer { bytes in
            var place = bytes.baseAddress
            guard let key = d2i_PUBKEY(nil, &place, bytes.count) else { return nil }
            guard place == bytes.baseAddress! + bytes.count else {
                EVP_PKEY_free(key)
                return nil
            }
            return key
        }
    }

    /// The coordinates of a key's point, 32 bytes each; `nil` for a key of another kind.
    private static func point(of key: OpaquePointer) -> [UInt8]? {
        defer { ERR_clear_error() }
        var (name, count) = ([CChar](repeating: 0, count: 64), 0)
        guard EVP_PKEY_get_base_id(key) == EVP_PKEY_EC, EVP_PKEY_get_group_name(key, &name, name.count, &count) == 1,
            String(decoding: name.prefix(count).map(UInt8.init(bitPattern:)), as: UTF8.self) == "prime256v1"
        else { return nil }
        var point: [UInt8] = []
        for coordinate in ["qx", "qy"] {
            var number: OpaquePointer?
            guard EVP_PKEY_get_bn_param(key, coordinate, &number) == 1 else { return nil }
            defer { BN_free(number) }
            var bytes = [UInt8](repeating: 0, count: 32)
            guard BN_bn2binpad(number, &bytes, 32) == 32 else { return nil }
            point += bytes
        }
        return point
    }

    /// Whether a DER-coded signature of these bytes, by SHA-256, is valid under this key.
    func verifies(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, bytes, bytes.count) == 1
    }

    /// The number `r` of a signature, 32 bytes; `nil` for bytes that are no signature in DER.
    ///
    /// Anybody who has a signature can make a second valid signature of the same bytes. Both have the same `r`.
    static func r(of signature: [UInt8]) -> [UInt8]? {
        defer { ERR_clear_error() }
        return signature.withUnsafeBufferPointer { bytes in
            var place = bytes.baseAddress
            guard let decoded = d2i_ECDSA_SIG(nil, &place, bytes.count) else { return nil }
            defer { ECDSA_SIG_free(decoded) }
            var r = [UInt8](repeating: 0, count: 32)
            guard place == bytes.baseAddress! + bytes.count, BN_bn2binpad(ECDSA_SIG_get0_r(decoded), &r, 32) == 32 else {
                return nil
            }
            return r
        }
    }
}
