public import Foundation
import TidemarkModel

extension CredentialStore {
    /// Makes a signed text for an address. For a while, anybody who has the address may do what the text permits.
    ///
    /// Only this cloud can make or alter such a text. Its payload is not encrypted.
    ///
    /// - Parameters:
    ///   - purpose: The purpose, such as `upload`; ``open(_:for:)`` accepts no other.
    ///   - expires: When the text expires: microseconds since 1970 UTC.
    public func signedText(_ payload: Data, for purpose: String, until expires: Int64) -> String {
        let check = Digest.hmac(Self.signedBytes(payload, purpose, expires), key: cache.signingSecret)
        return Base64URL.text(expires.bytesInOrder + check + payload)
    }

    /// Returns the payload of a signed text; `nil` when the text was altered, has another purpose, is from another cloud, or has
    /// expired.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`: then it is not known whether the text is valid.
    public func open(_ text: String, for purpose: String) throws(CredentialError) -> Data? {
        // No address has a longer text.
        guard text.utf8.count <= 16_384, let bytes = Base64URL.bytes(text), bytes.count >= 8 + Digest.size else { return nil }
        let expires = Int64(bytesInOrder: bytes[..<8])
        let payload = Data(bytes[(8 + Digest.size)...])
        let signedBytes = Self.signedBytes(payload, purpose, expires)
        guard expires > now() else { return nil }
        let isOurs = try secrets().contains { Digest.areEqual(bytes[8..<(8 + Digest.size)], Digest.hmac(signedBytes, key: $0)) }
        return isOurs ? payload : nil
    }

    /// Compares two texts in a time that does not depend on where they differ.
    public static func areEqual(_ left: String, _ right: String) -> Bool {
        Digest.areEqual(Digest.sha256(Array(left.utf8)), Digest.sha256(Array(right.utf8)))
    }

    /// The bytes that a text's signature covers. The purpose's length comes first, so that no other purpose and payload give the
    /// same bytes.
    private static func signedBytes(_ payload: Data, _ purpose: String, _ expires: Int64) -> [UInt8] {
        let purpose = Array(purpose.utf8)
        return Array("capability\0".utf8) + UInt32(purpose.count).bytesInOrder + purpose + expires.bytesInOrder + payload
    }
}
