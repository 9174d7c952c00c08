import COpenSSL
import Foundation
import TidemarkModel

/// A key with which a ``ProviderHost`` signs.
///
/// `@unchecked Sendable`: the key is not changed once it is made, and libcrypto lets several threads sign with one.
package final class ProviderKey: @unchecked Sendable {
    package enum Kind: String, Sendable {
        case rsa = "RS256"
        case p256 = "ES256"
    }

    package let kind: Kind
    package let id: String
    private let key: OpaquePointer

    package init(_ kind: Kind, id: String, bits: Int32 = 2_048) {
        let context = EVP_PKEY_CTX_new_from_name(nil, kind == .rsa ? "RSA" : "EC", nil)!
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        precondition(EVP_PKEY_keygen_init(context) == 1)
        switch kind {
        case .rsa: precondition(EVP_PKEY_CTX_set_rsa_keygen_bits(context, bits) == 1)
        case .p256: precondition(EVP_PKEY_CTX_set_group_name(context, "P-256") == 1)
        }
        precondition(EVP_PKEY_generate(context, &made) == 1)
        (self.kind, self.id, key) = (kind, id, made!)
    }

    deinit { EVP_PKEY_free(key) }

    private func number(_ name: String, size: Int32?) -> [UInt8] {
        var number: OpaquePointer?
        precondition(EVP_PKEY_get_bn_param(key, name, &number) == 1)
        defer { BN_free(number) }
        let size = size ?? (BN_num_bits(number) + 7) / 8
        var bytes = [UInt8](repeating: 0, count: Int(size))
        precondition(BN_bn2binpad(number, &bytes, size) == size)
        return bytes
    }

    /// The key's entry in a JSON Web Key set.
    package var document: [String: String] {
        let common = ["kid": id, "use": "sig", "alg": kind.rawValue]
        switch kind {
        case .rsa:
            return common.merging([
                "kty": "RSA", "n": Base64URL.text(number("n", size: nil)), "e": Base64URL.text(number("e", size: nil)),
            ]) { $1 }
        case .p256:
            return common.merging([
                "kty": "EC", "crv": "P-256", "x": Base64URL.text(number("qx", size: 32)),
                "y": Base64URL.text(number("qy", size: 32)),
            ]) { $1 }
        }
    }

    /// The public key in PEM, which an attacker could use as the secret of an HMAC.
    package var publicPEM: [UInt8] {
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(key, &der)
        defer { CRYPTO_free(der, nil, 0) }
        let text = Data(bytes: der!, count: Int(count)).base64EncodedString(options: [
            .lineLength64Characters, .endLineWithLineFeed,
        ])
        return Array("-----BEGIN PUBLIC KEY-----\n\(text)\n-----END PUBLIC KEY-----\n".utf8)
    }

    /// A signature as JSON Web Tokens have it.
    package func signature(of bytes: [UInt8]) -> [UInt8] {
        let context = EVP_MD_CTX_new()!
        defer { EVP_MD_CTX_free(context) }
        var count = 0
        precondition(
            EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1
                && EVP_DigestSign(context, nil, &count, bytes, bytes.count) == 1)
        var signature = [UInt8](repeating: 0, count: count)
        precondition(EVP_DigestSign(context, &signature, &count, bytes, bytes.count) == 1)
        signature = Array(signature.prefix(count))
        guard kind == .p256 else { return signature }
        return signature.withUnsafeBufferPointer { der in
            var place = der.baseAddress
            let pair = d2i_ECDSA_SIG(nil, &place, der.count)!
            defer { ECDSA_SIG_free(pair) }
            return [ECDSA_SIG_get0_r(pair), ECDSA_SIG_get0_s(pair)].flatMap { number in
                var bytes = [UInt8](repeating: 0, count: 32)
                precondition(BN_bn2binpad(number, &bytes, 32) == 32)
                return bytes
            }
        }
    }

    /// HMAC-SHA-256, for tokens that are signed with a secret.
    package static func hmac(of bytes: [UInt8], key: [UInt8]) -> [UInt8] {
        var (digest, count) = ([UInt8](repeating: 0, count: 32), 0 as UInt32)
        precondition(HMAC(EVP_sha256(), key, Int32(key.count), bytes, bytes.count, &digest, &count) != nil)
        return digest
    }

    static func sha256(_ bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        precondition(EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil) == 1)
        return digest
    }
}
