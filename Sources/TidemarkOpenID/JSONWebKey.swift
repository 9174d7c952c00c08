import COpenSSL
import Foundation
import TidemarkModel

/// The algorithms by which an ID token may be signed. All others are refused.
enum SigningAlgorithm: String, Sendable {
    /// RSA with PKCS #1 v1.5 and SHA-256.
    case rs256 = "RS256"
    /// ECDSA over P-256 with SHA-256.
    case es256 = "ES256"
}

/// A public key of a provider (RFC 7517), for RSA or the curve P-256.
///
/// `@unchecked Sendable`: the key is not changed after it is made, and libcrypto lets several threads verify with one key.
final class JSONWebKey: @unchecked Sendable {
    let id: String?
    let algorithm: SigningAlgorithm
    private let key: OpaquePointer

    /// The bits of an RSA key. Fewer can be broken, and more take long.
    private static let modulusSize = 2_048...8_192

    struct Document: Decodable {
        let kind: String
        let id, use, algorithm, curve, modulus, exponent, x, y: String?

        enum CodingKeys: String, CodingKey {
            case kind = "kty"
            case id = "kid"
            case algorithm = "alg"
            case curve = "crv"
            case modulus = "n"
            case exponent = "e"
            case use, x, y
        }
    }

    /// - Returns: `nil` for a key of another kind or use, and for an invalid key.
    init?(_ document: Document) {
        guard document.use == nil || document.use == "sig", (document.id?.utf8.count ?? 0) <= 1_000 else { return nil }
        let der: [UInt8]
        switch document.kind {
        case "RSA":
            algorithm = .rs256
            guard let modulus = Self.number(document.modulus), let exponent = Self.number(document.exponent),
                Self.modulusSize.contains(modulus.count * 8 - modulus[0].leadingZeroBitCount), (1...8).contains(exponent.count)
            else { return nil }
            der = DER.rsaKey(modulus: modulus, exponent: exponent)
        case "EC":
            algorithm = .es256
            guard document.curve == "P-256", let x = document.x.flatMap({ Base64URL.bytes($0) }),
                let y = document.y.flatMap({ Base64URL.bytes($0) }), x.count == 32, y.count == 32
            else { return nil }
            der = DER.p256Key(x: x, y: y)
        default: return nil
        }
        guard document.algorithm == nil || document.algorithm == algorithm.rawValue else { return nil }
        defer { ERR_clear_error() }
        // d2i_PUBKEY also checks that a point lies on the curve.
        let read = der.withUnsafeBufferPointer { bytes in
            var place = bytes.baseAddress
            return d2i_PUBKEY(nil, &place, bytes.count)
        }
        guard let read else { return nil }
        (id, key) = (document.id, read)
    }

    deinit { EVP_PKEY_free(key) }

    /// Decodes a number, without zero bytes in front; `nil` for none.
    private static func number(_ text: String?) -> [UInt8]? {
        guard let text, let bytes = Base64URL.bytes(text) else { return nil }
        let number = Array(bytes.drop { $0 == 0 })
        return number.isEmpty ? nil : number
    }

    /// Whether a signature of these bytes, in the form that RFC 7518 defines, is valid under this key.
    func verifies(_ signature: [UInt8], of bytes: [UInt8]) -> Bool {
        var signature = signature
        if algorithm == .es256 {
            // The signature is two numbers of 32 bytes. libcrypto takes them in DER.
            guard signature.count == 64 else { return false }
            signature = DER.sequence(DER.integer(signature[..<32]) + DER.integer(signature[32...]))
        }
        guard let context = EVP_MD_CTX_new() else { return false }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(context, signature, signature.count, bytes, bytes.count) == 1
    }
}

/// The keys of a provider.
struct JSONWebKeySet: Sendable {
    let keys: [JSONWebKey]

    /// The most keys that are read. No provider has as many.
    private static let most = 100

    /// Keys that can't be decoded are left out.
    private struct Document: Decodable {
        struct Key: Decodable {
            let document: JSONWebKey.Document?

            init(from decoder: any Decoder) { document = try? JSONWebKey.Document(from: decoder) }
        }

        let keys: [Key]
    }

    /// - Throws: ``OpenIDError`` `unreachable` if the bytes are no key set.
    init(_ bytes: [UInt8]) throws(OpenIDError) {
        guard let document = try? JSONDecoder().decode(Document.self, from: Data(bytes)) else {
            throw OpenIDError(.unreachable, "what the identity provider gives out as its keys are none")
        }
        keys = document.keys.prefix(Self.most).compactMap { $0.document.flatMap { JSONWebKey($0) } }
    }

    /// The key with which a token is signed, by the token's header.
    ///
    /// - Parameter id: `nil` where the header names no key: then only a single key fits.
    func key(_ id: String?, for algorithm: SigningAlgorithm) -> JSONWebKey? {
        let fitting = keys.filter { $0.algorithm == algorithm && (id == nil || $0.id == id) }
        return fitting.count == 1 ? fitting[0] : nil
    }
}

/// The part of DER (X.690) that libcrypto needs for keys and signatures.
enum DER {
    private static func item(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        var length: [UInt8] = []
        if content.count < 128 {
            length = [UInt8(content.count)]
        } else {
            var rest = content.count
            while rest > 0 {
                length.insert(UInt8(rest & 255), at: 0)
                rest >>= 8
            }
            length.insert(0x80 | UInt8(length.count), at: 0)
        }
        return [tag] + length + content
    }

    static func sequence(_ content: [UInt8]) -> [UInt8] { item(0x30, content) }

    /// - Parameter bytes: A number, the most significant byte first.
    static func integer(_ bytes: some Collection<UInt8>) -> [UInt8] {
        let number = Array(bytes.drop { $0 == 0 })
        return item(0x02, number.first.map { $0 < 128 } ?? false ? number : [0] + number)
    }

    private static func bits(_ content: [UInt8]) -> [UInt8] { item(0x03, [0] + content) }

    /// SubjectPublicKeyInfo of an RSA key.
    static func rsaKey(modulus: [UInt8], exponent: [UInt8]) -> [UInt8] {
        let rsaEncryption: [UInt8] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00]
        return sequence(sequence(rsaEncryption) + bits(sequence(integer(modulus) + integer(exponent))))
    }

    /// SubjectPublicKeyInfo of a point of P-256.
    static func p256Key(x: [UInt8], y: [UInt8]) -> [UInt8] {
        let curve: [UInt8] = [
            0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
        ]
        return sequence(sequence(curve) + bits([4] + x + y))
    }
}
