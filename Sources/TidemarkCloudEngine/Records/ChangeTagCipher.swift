import Foundation
import TidemarkCloud
import TidemarkModel

/// Numbers of changes as callers get them: in tags and tokens.
///
/// All zones of an owner count together. A caller who sees a part of a zone could tell from the numbers how much changes beside it. So
/// callers get them encrypted with a key that only the cloud knows: equal numbers can be told from different ones, and nothing more.
///
/// A number is a block of AES-128, behind eight bytes that tell its owner: a tag of one owner is none of another, whose numbers are others. Before
/// owners were counted by themselves these bytes were zero, and the tags from then stay as they are. A text that is not a tag of the key decrypts to
/// other bytes: it is no number.
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
        // Digests are of the key itself, so tags have another.
        cipher = AESBlockCipher(key: Hexadecimal.bytes(Self.digest("key of the change tags", key))!)
    }

    /// The tag of an owner's change.
    func tag(_ number: Int64, of owner: String) -> String { number <= common ? text(number) : text(number, of: owner) }

    /// A number that belongs to an owner.
    func text(_ number: Int64, of owner: String) -> String { text(number, ownerHash(owner)) }

    /// A number of the time when all owners were counted together.
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

    /// - Returns: The number of the time when all owners were counted together; `nil` for a text that is none.
    func number(_ text: some StringProtocol) -> Int64? {
        guard let position = position(text), position.owner == 0 else { return nil }
        return position.number
    }

    /// The number that a tag stands for.
    struct TagNumber: Hashable, Sendable {
        let number: Int64
        /// Whether it is of the time when all owners were counted together.
        let isCommon: Bool
    }

    /// - Returns: `nil` for a text that is no tag of the owner's.
    func number(_ tag: some StringProtocol, of owner: String) -> TagNumber? {
        guard let position = position(tag), position.owner == 0 || position.owner == ownerHash(owner) else { return nil }
        return TagNumber(number: position.number, isCommon: position.owner == 0)
    }

    /// The number of a text, with what its owner is known by; 0 for all of them together.
    ///
    /// - Returns: `nil` for a text that is not of this key, as far as that can be told without the owner.
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

    /// What an owner is known by in a block, never 0: FNV-1a of the name. The block is encrypted, so nobody can look for two names with one hash.
    func ownerHash(_ owner: String) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in owner.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return max(hash, 1)
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
