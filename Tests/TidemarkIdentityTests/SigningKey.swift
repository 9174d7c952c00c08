import COpenSSL
import Foundation
import TidemarkIdentity

/// A private key like a server's, made for a test.
final class SigningKey {
    private let key: OpaquePointer
    let publicPEM: String

    init(_ group: String = "P-256") {
        let context = EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nil)!
        defer { EVP_PKEY_CTX_free(context) }
        var made: OpaquePointer?
        precondition(
            EVP_PKEY_keygen_init(context) == 1 && EVP_PKEY_CTX_set_group_name(context, group) == 1
                && EVP_PKEY_generate(context, &made) == 1)
        key = made!
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_PUBKEY(key, &der)
        publicPEM = Self.pem(Data(bytes: der!, count: Int(count)))
        CRYPTO_free(der, nil, 0)
    }

    deinit { EVP_PKEY_free(key) }

    static func pem(_ der: Data, _ label: String = "PUBLIC KEY") -> String {
        let text = der.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n"
    }

    /// A signature, DER-coded.
    func signature(of text: String) -> [UInt8] {
        let context = EVP_MD_CTX_new()!
        defer { EVP_MD_CTX_free(context) }
        var (signature, count) = ([UInt8](repeating: 0, count: 100), 100)
        let bytes = Array(text.utf8)
        precondition(
            EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1
                && EVP_DigestSign(context, &signature, &count, bytes, bytes.count) == 1)
        return Array(signature[..<count])
    }

    /// The other valid signature of the same bytes, which can be made from one without the key: with n − s in place of s.
    static func twin(_ signature: [UInt8]) -> [UInt8] {
        let decoded = signature.withUnsafeBufferPointer { bytes in
            var place = bytes.baseAddress
            return d2i_ECDSA_SIG(nil, &place, bytes.count)!
        }
        defer { ECDSA_SIG_free(decoded) }
        var order: OpaquePointer?
        BN_hex2bn(&order, "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")
        defer { BN_free(order) }
        let s = BN_new()!
        BN_sub(s, order, ECDSA_SIG_get0_s(decoded))
        ECDSA_SIG_set0(decoded, BN_dup(ECDSA_SIG_get0_r(decoded)), s)
        var der: UnsafeMutablePointer<UInt8>?
        let count = i2d_ECDSA_SIG(decoded, &der)
        defer { CRYPTO_free(der, nil, 0) }
        return Array(UnsafeBufferPointer(start: der, count: Int(count)))
    }

    /// A request as the server with this key sends it.
    func request(
        _ date: String, _ body: String, path: String = "/database/1/c/development/public/records/modify"
    ) -> SignedRequest {
        let hash = sha256(body)
        let signature = signature(of: "\(date):\(hash):\(path)")
        return SignedRequest(date: date, body: Array(body.utf8), path: path, signature: Data(signature).base64EncodedString())
    }

    private func sha256(_ text: String) -> String {
        var digest = [UInt8](repeating: 0, count: 32)
        let bytes = Array(text.utf8)
        precondition(EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil) == 1)
        return Data(digest).base64EncodedString()
    }
}
