import Foundation
import TidemarkCloud
import TidemarkModel

/// Numbers of changes as callers get them: in tags and tokens.
///
/// All databases of a container count together. A caller who sees a part of a zone could tell from the numbers how much changes beside it. So
/// callers get them encrypted with a key that only the cloud knows: equal numbers can be told from different ones, and nothing more.
///
/// A number is a block of AES-128, behind eight zero bytes. A text that is not a tag of the key decrypts to others: it is no number.
package struct ChangeTagCipher: Sendable {
    private let key: [UInt8]
    private let cipher: AESBlockCipher

    /// - Parameter key: 16 bytes.
    init(_ key: [UInt8]) {
        precondition(key.count == 16)
        self.key = key
        // Digests are of the key itself, so tags have another.
        cipher = AESBlockCipher(key: Hexadecimal.bytes(Self.digest("key of the change tags", key))!)
    }

    func text(_ number: Int64) -> String {
        var block = [UInt8](repeating: 0, count: 16)
        block.withUnsafeMutableBytes { $0.storeBytes(of: number.bigEndian, toByteOffset: 8, as: Int64.self) }
        cipher.encrypt(&block)
        return Base64URL.text(block)
    }

    /// - Returns: `nil` for a text that is not of this key.
    package func number(_ text: some StringProtocol) -> Int64? {
        guard text.utf8.count == 22, var block = Base64URL.bytes(text) else { return nil }
        cipher.decrypt(&block)
        let (zeros, number) = block.withUnsafeBytes {
            ($0.loadUnaligned(as: Int64.self), Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: Int64.self)))
        }
        return zeros == 0 && number >= 0 ? number : nil
    }

    /// Whether a text may be a tag as the cloud made them before: 64 bits of another cipher, to the base 36.
    ///
    /// One in 180,000 of those has fewer digits than this asks for, and made-up texts mostly have.
    static func isOldTag(_ text: String) -> Bool {
        (10...13).contains(text.utf8.count) && UInt64(text, radix: 36).map { String($0, radix: 36) == text } ?? false
    }

    /// Returns the same for the same text, from which the text can't be told.
    func digest(_ text: String) -> String { Self.digest(text, key) }

    private static func digest(_ text: String, _ key: [UInt8]) -> String {
        String(AssetDigest.asset(of: Data(key + Array(text.utf8))).digest.prefix(32))
    }
}
