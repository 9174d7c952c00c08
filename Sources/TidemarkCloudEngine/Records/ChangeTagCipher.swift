import Foundation
import TidemarkCloud
import TidemarkModel

/// Encrypts the numbers of changes that callers get, in tags and tokens.
///
/// All zones of an owner share one counter. From plain numbers, a caller who sees a part of a zone could tell how much changes
/// outside it. So the numbers are encrypted with a key that only the cloud knows. Callers can only tell whether two numbers are
/// equal.
///
/// A number is one block of AES-128: eight bytes that identify the owner, then the number. So a tag of one owner is no tag of
/// another. Before each owner had a counter, the eight bytes were zero; tags from then stay valid. A text that is no tag of this
/// key decrypts to other bytes, and has no number.
package struct ChangeTagCipher: Sendable {
    private let key: [UInt8]
    private let cipher: AESBlockCipher
    /// As ``CloudStorage/commonChanges``.
    let common: Int64

    /// - Parameter key: 16 bytes.
    init(_ key: [UInt8], common: Int64 = 0) {
        precondition(key.count == 16)
        self.key = key
        self.common = common
        // Digests use the key itself, so tags are encrypted with a key that is derived from it.
        cipher = AESBlockCipher(key: Hexadecimal.bytes(Self.digest("key of the change tags", key))!)
    }

    /// The tag of an owner's change.
    func tag(_ number: Int64, of owner: String) -> String { number <= common ? text(number) : text(number, of: owner) }

    /// Returns the text of a number from an owner's counter.
    func text(_ number: Int64, of owner: String) -> String { text(number, ownerHash(owner)) }

    /// Returns the text of a number from the counter that all owners once shared.
    func text(_ number: Int64) -> String { text(number, 0) }

    private func text(_ number: Int64, _ owner: UInt64) -> String {
        var block = [UInt8](repeating: 0, count: 16)
        block.withUnsafeMutableBytes {
            $0.storeBytes(of: owner.bigEndian, as: UInt64.self)
            $0.storeBytes(of: number.bigEndian, toByteOffset: 8, as: Int64.self)
        }
        cipher.encrypt(&block)
        return Base64URL.text(block)
    }

    /// - Returns: The number from the counter that all owners once shared; `nil` for another text.
    func number(_ text: some StringProtocol) -> Int64? {
        guard let position = position(text), position.owner == 0 else { return nil }
        return position.number
    }

    /// The number that a tag stands for.
    struct TagNumber: Hashable, Sendable {
        let number: Int64
        /// Whether the number comes from the counter that all owners once shared.
        let isCommon: Bool
    }

    /// - Returns: `nil` for a text that is no tag of the owner's.
    func number(_ tag: some StringProtocol, of owner: String) -> TagNumber? {
        guard let position = position(tag), position.owner == 0 || position.owner == ownerHash(owner) else { return nil }
        return TagNumber(number: position.number, isCommon: position.owner == 0)
    }

    /// Returns the number of a text, with the hash of its owner; 0 stands for the counter that all owners once shared.
    ///
    /// - Returns: `nil` for a text that this key has not made, as far as that can be told without the owner.
    package func position(_ text: some StringProtocol) -> (owner: UInt64, number: Int64)? {
        guard text.utf8.count == 22, var block = Base64URL.bytes(text) else { return nil }
        cipher.decrypt(&block)
        let (owner, number) = block.withUnsafeBytes {
            (
                UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                Int64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: Int64.self))
            )
        }
        return number >= 0 ? (owner, number) : nil
    }

    /// Returns the hash that identifies an owner in a block, never 0: FNV-1a of the name. The block is encrypted, so nobody can
    /// search for two names with the same hash.
    func ownerHash(_ owner: String) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in owner.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return max(hash, 1)
    }

    /// Returns whether a text may be a tag of an earlier version: 64 bits of another cipher, in base 36.
    ///
    /// One in 180,000 of those tags has fewer digits than this accepts, and so do most made-up texts.
    static func isOldTag(_ text: String) -> Bool {
        (10...13).contains(text.utf8.count) && UInt64(text, radix: 36).map { String($0, radix: 36) == text } ?? false
    }

    /// Returns a keyed digest: equal for equal texts, and it does not reveal the text.
    func digest(_ text: String) -> String { Self.digest(text, key) }

    private static func digest(_ text: String, _ key: [UInt8]) -> String {
        String(AssetDigest.asset(of: Data(key + Array(text.utf8))).digest.prefix(32))
    }
}
