public import Foundation
import TidemarkModel

extension CredentialStore {
    /// What an address allows for a while whoever has it, as text that it can have as it is.
    ///
    /// Nobody else can make or alter one. What it carries can be read by whoever has it.
    ///
    /// - Parameters:
    ///   - purpose: What it is good for, such as `upload`; it opens for nothing else.
    ///   - expires: Until when: microseconds since 1970 UTC.
    public func signedText(_ payload: Data, for purpose: String, until expires: Int64) -> String {
        let check = Digest.hmac(Self.signedBytes(payload, purpose, expires), key: cache.signingSecret)
        return Base64URL.text(expires.bytesInOrder + check + payload)
    }

    /// What a capability carries; `nil` when it was altered, is of another purpose or another cloud, or has expired.
    ///
    /// - Throws: ``CredentialError`` `storage`, `busy`: then nothing is known of it.
    public func open(_ text: String, for purpose: String) throws(CredentialError) -> Data? {
        // No address is that long.
        guard text.utf8.count <= 16_384, let bytes = Base64URL.bytes(text), bytes.count >= 8 + Digest.size else { return nil }
        let expires = Int64(bytesInOrder: bytes[..<8])
        let payload = Data(bytes[(8 + Digest.size)...])
        let signedBytes = Self.signedBytes(payload, purpose, expires)
        guard expires > now() else { return nil }
        let isOurs = try secrets().contains { Digest.areEqual(bytes[8..<(8 + Digest.size)], Digest.hmac(signedBytes, key: $0)) }
        return isOurs ? payload : nil
    }

    /// Compares two texts in a time that does not tell where they differ.
    public static func areEqual(_ left: String, _ right: String) -> Bool {
        Digest.areEqual(Digest.sha256(Array(left.utf8)), Digest.sha256(Array(right.utf8)))
    }

    /// What a capability's check is made of. The purpose has its length in front: no two of them flow into each other.
    private static func signedBytes(_ payload: Data, _ purpose: String, _ expires: Int64) -> [UInt8] {
        let purpose = Array(purpose.utf8)
        return Array("capability\0".utf8) + UInt32(purpose.count).bytesInOrder + purpose + expires.bytesInOrder + payload
    }
}
